#include "tests/sim/verify_at_rest.h"

#include <algorithm>

#include "engine/verify/verify.h"

namespace rdmacc {
namespace {

bool is_leak(const Finding& finding) {
  const FaultKind kinds[] = {FaultKind::kLeakedSlot, FaultKind::kLeakedBlock};
  return std::any_of(std::begin(kinds), std::end(kinds),
                     [&](FaultKind kind) { return finding.kind == fault_name(kind); });
}

}  // namespace

Status verify_at_rest(Session& session, const Workload& workload, const TxnOptions& txn,
                      bool losses) {
  VerifyOptions options;
  options.txn = txn;
  options.units = true;
  std::vector<TableToVerify> tables;
  for (size_t i = 0; i < workload.tables().size(); ++i) {
    tables.push_back({workload.tables()[i], workload.is_ordered_index(i)});
  }
  Result<VerifyReport> report = verify_tables(session, tables, options);
  if (!report.ok()) return report.status();
  for (const Finding& finding : report->findings) {
    if (losses && is_leak(finding)) continue;
    return Status(Code::kCorrupt, "verification: " + finding.to_string());
  }
  return Status();
}

}  // namespace rdmacc
