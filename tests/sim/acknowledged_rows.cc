#include "tests/sim/acknowledged_rows.h"

#include <algorithm>
#include <set>

#include "engine/check/key_histories.h"
#include "engine/workloads/workload.h"

namespace rdmacc {
namespace {

constexpr size_t kKeysOfBatch = 64;

}  // namespace

AcknowledgedRows::AcknowledgedRows(const std::vector<HistoryTransaction>& history) {
  for (const HistoryTransaction& transaction : history) {
    if (transaction.outcome == HistoryOutcome::kAborted) continue;
    for (const HistoryEvent& event : transaction.events) {
      if (!makes_a_version(event.op)) continue;
      Last& last = tables_[event.table][event.key];
      if (transaction.outcome == HistoryOutcome::kUnknown) {
        last.outcome_unknown = true;
      } else if (event.version > last.version) {
        last.version = event.version;
        last.live = event.op != HistoryOp::kDelete;
      }
    }
  }
}

uint64_t AcknowledgedRows::live_rows(TableId table) const { return live_keys(table).size(); }

std::vector<std::string_view> AcknowledgedRows::live_keys(TableId table) const {
  std::vector<std::string_view> keys;
  const auto found = tables_.find(table);
  if (found == tables_.end()) return keys;
  for (const auto& [key, last] : found->second) {
    if (last.live && !last.outcome_unknown) keys.push_back(key);
  }
  return keys;
}

std::string AcknowledgedRows::compare(const std::string& key, const Last& expected, bool found,
                                      uint64_t version, const char* by) {
  if (expected.outcome_unknown) return "";
  if (found == expected.live && (!found || version == expected.version)) return "";
  const std::string stamp = std::to_string(expected.version);
  const std::string seen = found ? "version " + std::to_string(version) : "nothing";
  return "row " + key + " is lost: version " + stamp +
         (expected.live ? " was acknowledged" : " deleted it") + ", " + by + " finds " + seen;
}

Status AcknowledgedRows::look_up(Session& session, TableId table, const Rows& rows,
                                 std::string& violation) {
  std::vector<std::string_view> keys;
  std::vector<RowView> views;
  for (auto row = rows.begin(); row != rows.end();) {
    const auto first = row;
    keys.clear();
    for (; row != rows.end() && keys.size() < kKeysOfBatch; ++row) keys.push_back(row->first);
    views.assign(keys.size(), RowView{});
    RDMACC_RETURN_IF_ERROR(session.get_many(table, keys, views));
    auto expected = first;
    for (const RowView& view : views) {
      const std::string problem =
          compare(expected->first, expected->second, view.found, view.version, "a look-up");
      if (violation.empty()) violation = problem;
      ++expected;
    }
  }
  return Status();
}

Status AcknowledgedRows::scan(Session& session, TableId table, const Rows& rows,
                              std::string& violation) {
  std::set<std::string, std::less<>> seen;
  const auto note = [&violation](std::string problem) {
    if (violation.empty()) violation = std::move(problem);
  };
  RDMACC_RETURN_IF_ERROR(for_each_row(session, table, [&](const RowView& view) {
    const std::string key(view.key);
    const auto expected = rows.find(key);
    if (!seen.insert(key).second) note("a scan gives " + key + " twice");
    if (expected == rows.end()) {
      note("a scan finds " + key + ", which no committed transaction wrote");
    } else {
      note(compare(key, expected->second, true, view.version, "a scan"));
    }
    return Status();
  }));
  for (const auto& [key, last] : rows) {
    if (!seen.contains(key)) note(compare(key, last, false, 0, "a scan"));
  }
  return Status();
}

Status AcknowledgedRows::check(Session& session, const TxnOptions& options,
                               std::span<const TableId> tables, std::string& violation) const {
  static const Rows none;
  violation.clear();
  for (const TableId table : tables) {
    const auto found = tables_.find(table);
    const Rows& rows = found == tables_.end() ? none : found->second;
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, look_up(session, table, rows, violation)));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, scan(session, table, rows, violation)));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  }
  return Status();
}

}  // namespace rdmacc
