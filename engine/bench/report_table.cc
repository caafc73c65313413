#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "engine/bench/report.h"
#include "engine/bench/report_measures.h"
#include "engine/bench/report_numbers.h"

namespace rdmacc {
namespace {

using Row = std::vector<std::string>;

__attribute__((format(printf, 1, 2))) std::string formatted(const char* format, ...) {
  char text[64];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

Row heading(const BenchRun& run) {
  Row row;
  for (const auto& [parameter, value] : run.options.swept) row.push_back(parameter);
  row.insert(row.end(), {"committed/s", "aborted %", "mean us", "p50 us", "p99 us", "verbs",
                         "nodes", "effective CPU %"});
  return row;
}

Row row_of(const BenchRun& run) {
  Row row;
  for (const auto& [parameter, value] : run.options.swept) row.push_back(value);
  const LatencyUs latency = latency_us(run.result);
  const std::optional<ProcessorUse> use = processor_use(run);
  const NodeSpread& spread = run.result.measures.spread;
  row.insert(row.end(),
             {formatted("%.0f", committed_per_second(run.result)),
              formatted("%.2f", 100 * abort_rate(run.result)), formatted("%.1f", latency.mean),
              formatted("%.1f", latency.p50), formatted("%.1f", latency.p99),
              formatted("%.2f", verbs_per_transaction(run.result)),
              spread.known() ? formatted("%.2f", spread.mean()) : "-",
              use ? formatted("%.1f", 100 * use->effective) : "-"});
  return row;
}

}  // namespace

std::string report_table(std::span<const BenchRun> runs) {
  CHECK(!runs.empty());
  std::vector<Row> rows{heading(runs[0])};
  for (const BenchRun& run : runs) rows.push_back(row_of(run));
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  add_line(text, "workload: %s", runs[0].options.workload.c_str());
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < rows[r].size(); ++i) {
      text += std::string(widths[i] - rows[r][i].size() + (i == 0 ? 0 : 2), ' ') + rows[r][i];
    }
    const bool broken = r > 0 && !runs[r - 1].result.violation.empty();
    if (broken) text += "  invariant: " + invariant(runs[r - 1].result);
    text += '\n';
  }
  return text;
}

}  // namespace rdmacc
