#include "engine/verify/verify.h"

#include <algorithm>

#include "engine/verify/locks.h"
#include "engine/verify/look_ups.h"
#include "engine/verify/suspects.h"
#include "engine/verify/tree.h"

namespace rdmacc {
namespace {

constexpr uint64_t kFirstPauseUs = 2'000;
constexpr uint32_t kDoublingsMax = 16;

// What transactions meet in a table that is damaged. Where that is known already, they need not
// say it, too; where it is not, it is a finding that they do not get through.
Status judge(const Status& seen, TableId table, bool damaged, std::vector<Finding>& findings) {
  const bool met = seen.code() == Code::kCorrupt || (damaged && seen.code() == Code::kAborted);
  if (!met) return seen;
  if (!damaged) findings.push_back({kFindingUnreadable, table, 0, 0, "", seen.message()});
  return Status();
}

Status look_rows_up(Session& session, TableId table, const VerifyOptions& options, bool damaged,
                    VerifyReport& report) {
  LookUpCheck look_ups(session, options, table, session.topology().nodes);
  const size_t before = report.findings.size();
  const Status seen = look_ups.run(report.findings);
  report.rows += look_ups.rows();
  if (!seen.ok() || damaged || report.findings.size() > before) {
    return judge(seen, table, damaged, report.findings);
  }
  return look_ups.count(report.findings);
}

Status verify_table(Session& session, const TableToVerify& asked, const VerifyOptions& options,
                    VerifyReport& report) {
  const NodeId nodes = session.topology().nodes;
  const size_t before = report.findings.size();
  Suspects suspects(session, options, asked.table);
  RDMACC_RETURN_IF_ERROR(suspects.run(nodes, report.findings));
  const size_t without_locks = report.findings.size();
  LockCheck locks(session, options, asked.table);
  RDMACC_RETURN_IF_ERROR(locks.run(nodes, report.findings));
  // No transaction gets past a lock that nothing releases.
  if (report.findings.size() > without_locks) return Status();
  const bool damaged = report.findings.size() > before;
  RDMACC_RETURN_IF_ERROR(look_rows_up(session, asked.table, options, damaged, report));
  if (!asked.ordered_index) return Status();
  TreeCheck tree(session, options, asked.table, nodes);
  return judge(tree.run(report.findings), asked.table, damaged, report.findings);
}

}  // namespace

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

std::string Finding::to_string() const {
  std::string text = kind + ": table " + std::to_string(table) + ", node " + std::to_string(node);
  if (offset != 0) text += ", at " + std::to_string(offset);
  if (!key.empty()) text += ", key " + hex(key);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

uint64_t VerifyOptions::pause_us(uint32_t pass) const {
  return std::min(kFirstPauseUs << std::min(pass, kDoublingsMax), pause_us_max);
}

Result<VerifyReport> verify_tables(Session& session, std::span<const TableToVerify> tables,
                                   const VerifyOptions& options) {
  CHECK(!session.active());
  VerifyReport report;
  for (const TableToVerify& table : tables) {
    RDMACC_RETURN_IF_ERROR(verify_table(session, table, options, report));
  }
  if (options.units) {
    Suspects units(session, options, kNoTable);
    RDMACC_RETURN_IF_ERROR(units.run(session.topology().nodes, report.findings));
  }
  return report;
}

}  // namespace rdmacc
