#include "engine/verify/suspects.h"

#include "engine/log/log_entry.h"
#include "engine/storage/layout/overflow.h"

namespace rdmacc {

namespace {
// A request to free a unit may be under way for so long after its transaction has left the gate.
constexpr uint64_t kFreedWithinUs = 50'000;
}  // namespace

Status Suspects::run(NodeId nodes, std::vector<Finding>& findings) {
  rows_ = 0;
  std::vector<OfNode> left;
  for (NodeId node = 0; node < nodes; ++node) {
    OfNode of{node, {}};
    RDMACC_RETURN_IF_ERROR(first_look(of));
    if (!of.suspects.empty()) left.push_back(std::move(of));
  }
  for (uint32_t pass = 1; pass < options_.passes_max && !left.empty(); ++pass) {
    session_.scheduler().sleep_for(options_.pause_us(pass));
    for (OfNode& of : left) RDMACC_RETURN_IF_ERROR(look_again(of, findings));
    std::erase_if(left, [](const OfNode& of) { return of.suspects.empty(); });
  }
  for (const OfNode& of : left) {
    for (const auto& [identity, suspect] : of.suspects) {
      if (outlived_to_be_sure(suspect.fault.kind)) continue;
      Finding finding = finding_of(of.node, suspect.fault);
      finding.detail = finding.kind + ", locked at each look; " + finding.detail;
      finding.kind = kFindingBusy;
      findings.push_back(std::move(finding));
    }
  }
  return Status();
}

Status Suspects::first_look(OfNode& of) {
  if (options_.is_cancelled()) return Status(Code::kCancelled);
  Result<AuditReport> report = session_.audit(of.node, table_);
  if (!report.ok()) return report.status();
  rows_ += report->rows;
  for (const Fault& fault : report->faults) {
    const uint64_t now_us = session_.scheduler().endpoint().now_us();
    of.suspects.emplace(identity_of(fault), Suspect{fault, report->epoch, now_us});
  }
  return Status();
}

// What is not there any more was a change under way. What is new is left to the next verification.
Status Suspects::look_again(OfNode& of, std::vector<Finding>& findings) {
  if (options_.is_cancelled()) return Status(Code::kCancelled);
  Result<AuditReport> report = session_.audit(of.node, table_);
  if (!report.ok()) return report.status();
  std::map<Identity, Suspect> still;
  for (const Fault& fault : report->faults) {
    const auto known = of.suspects.find(identity_of(fault));
    if (known == of.suspects.end()) continue;
    Suspect suspect = known->second;
    suspect.fault = fault;
    ++suspect.looks;
    if (confirmed(suspect, report->epoch)) {
      findings.push_back(finding_of(of.node, fault));
    } else {
      still.emplace(identity_of(fault), std::move(suspect));
    }
  }
  of.suspects = std::move(still);
  return Status();
}

bool Suspects::confirmed(const Suspect& suspect, uint64_t epoch) const {
  if (!outlived_to_be_sure(suspect.fault.kind)) return suspect.fault.settled;
  if (kept_by_log(suspect.fault)) return false;
  const uint64_t now_us = session_.scheduler().endpoint().now_us();
  return suspect.epoch != 0 && epoch >= suspect.epoch + 2 && suspect.looks > 2 &&
         now_us >= suspect.since_us + kFreedWithinUs;
}

// A worker gives the segments of a long log record back when it runs next, which for a session
// that waits for its client may be much later.
bool Suspects::kept_by_log(const Fault& fault) const {
  if (fault.kind != FaultKind::kLeakedBlock || fault.detail < kLogSegmentBytes) return false;
  const auto worker = static_cast<WorkerId>(fault.identity);
  return worker < session_.topology().workers_max &&
         session_.scheduler().endpoint().incarnation_of(worker) != 0;
}

Finding Suspects::finding_of(NodeId node, const Fault& fault) const {
  Finding finding;
  finding.kind = fault_name(fault.kind);
  finding.table = fault.table;
  finding.node = node;
  finding.offset = fault.offset;
  finding.key = fault.key;
  const std::string value = std::to_string(fault.detail);
  switch (fault.kind) {
    case FaultKind::kRoot:
      finding.detail = "slot " + value + " names " + std::to_string(fault.identity);
      break;
    case FaultKind::kGroup:
      finding.detail = "of the hash bits " + value;
      break;
    case FaultKind::kChain:
      finding.detail = "leads to " + value;
      break;
    case FaultKind::kLostRow:
    case FaultKind::kLeakedSlot:
      finding.detail = "linked nowhere in the group at " + value;
      break;
    case FaultKind::kTwice:
      finding.detail = "the record at " + value;
      break;
    case FaultKind::kWrongKey:
      finding.detail = "its header says " + value;
      break;
    case FaultKind::kOwnLock:
      finding.detail = "of a thread of the node that is doing nothing there: " + value;
      break;
    case FaultKind::kLeakedBlock:
      finding.detail = "of worker " + std::to_string(fault.identity & 0xFFFF) + ", allocated " +
                       std::to_string((fault.identity & ~kKeptBit) >> 16) +
                       " us into the cluster's time";
      break;
    case FaultKind::kLeakedUnit:
      finding.detail = "in use, and nothing leads there";
      break;
    default:
      finding.detail = "entry for the record at " + std::to_string(entry_offset(fault.detail));
  }
  return finding;
}

}  // namespace rdmacc
