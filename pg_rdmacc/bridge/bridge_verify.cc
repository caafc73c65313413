// Verification behind engine_bridge.h: of one table and its indexes, on a session of its own beside
// the backend's.
#include "engine/verify/verify.h"
#include "rdma/base/check.h"

#include "pg_rdmacc/bridge/bridge_attachment.h"

namespace rdmacc::bridge {
namespace {

Status verify(Attachment& at, std::span<const TableToVerify> tables, bool units) {
  Session session(*at.coordinator);
  CHECK(at.verifying == nullptr && at.found.empty());
  at.verifying = &session;
  at.verify_cancelled = false;
  VerifyOptions options;
  options.txn.protocol = at.txn.protocol;
  options.txn.plan = at.txn.plan;
  options.txn.lock_mode = at.txn.options.lock_mode;
  options.txn.gate_timeout_us = at.txn.options.gate_timeout_us;
  options.units = units;
  options.cancelled = [&at] { return at.verify_cancelled; };
  VerifyReport report;
  // Out of memory or not: nothing refers to the session behind this, and nothing is left locked.
  const Status verified = guarded([&]() -> Status {
    Result<VerifyReport> made = verify_tables(session, tables, options);
    if (!made.ok()) return made.status();
    report = std::move(*made);
    return Status();
  });
  at.verifying = nullptr;
  session.abort();
  RDMACC_RETURN_IF_ERROR(verified);
  at.found = std::move(report.findings);
  for (Finding& finding : at.found) {
    if (finding.offset != 0) {
      finding.detail = "at " + std::to_string(finding.offset) + ": " + finding.detail;
    }
    at.findings.push_back({.kind = finding.kind.c_str(),
                           .table = finding.table,
                           .node = finding.node,
                           .key = {finding.key.data(), finding.key.size()},
                           .detail = finding.detail.c_str()});
  }
  return Status();
}

}  // namespace
}  // namespace rdmacc::bridge

using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;

void bridge_start_verify(const rdmacc::TableToVerify* asked, size_t count, bool units) {
  CHECK(count == 0 || asked != nullptr);
  rdmacc::bridge::start([=](rdmacc::Session&) {
    Attachment& at = *attached();
    at.findings.clear();
    at.found.clear();
    return rdmacc::bridge::verify(at, {asked, count}, units);
  });
}

size_t bridge_findings(const BridgeFinding** findings) {
  const Attachment* at = attached();
  *findings = at != nullptr ? at->findings.data() : nullptr;
  return at != nullptr ? at->findings.size() : 0;
}
