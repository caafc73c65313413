#include "engine/verify/locks.h"

#include <algorithm>

#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {

namespace {
constexpr uint32_t kQuietLooks = 2;
constexpr uint64_t kResolvedWithinUs = 2'000'000;  // a worker that has died, unless a node is away
constexpr uint32_t kAnswersMax = 1u << 20;         // of one node about its locks
}  // namespace

Status LockCheck::run(NodeId nodes, std::vector<Finding>& findings) {
  std::vector<Held> held;
  RDMACC_RETURN_IF_ERROR(look(nodes, held));
  Suspects suspects;
  for (Held& each : held) {
    if (owner_of(each) == Owner::kSome) continue;
    Suspect suspect{each, epoch_of(after_.gate.epoch), session_.scheduler().endpoint().now_us()};
    suspects.emplace(each.identity(), std::move(suspect));
  }
  for (uint32_t again = 1; again < options_.passes_max && !suspects.empty(); ++again) {
    session_.scheduler().sleep_for(options_.pause_us(again));
    RDMACC_RETURN_IF_ERROR(look(nodes, held));
    Suspects still;
    for (const Held& each : held) {
      const auto known = suspects.find(each.identity());
      if (known == suspects.end()) continue;
      known->second.held = each;
      if (confirmed(known->second)) {
        findings.push_back(finding_of(each));
      } else if (owner_of(each) != Owner::kSome) {
        still.insert(*known);
      }
    }
    suspects = std::move(still);
  }
  return Status();
}

Status LockCheck::look(NodeId nodes, std::vector<Held>& held) {
  held.clear();
  if (options_.is_cancelled()) return Status(Code::kCancelled);
  RDMACC_RETURN_IF_ERROR(session_.gate_state(&before_.gate, &before_.workers));
  for (NodeId node = 0; node < nodes; ++node) RDMACC_RETURN_IF_ERROR(headers_of(node, held));
  if (held.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(session_.gate_state(&after_.gate, &after_.workers));
  Result<InDoubtList> doubts = session_.in_doubt();
  if (!doubts.ok()) return doubts.status();
  doubts_ = std::move(*doubts);
  return Status();
}

Status LockCheck::headers_of(NodeId node, std::vector<Held>& held) {
  uint64_t from = 0;
  for (uint32_t answer = 0; answer < kAnswersMax; ++answer) {
    Result<LockedHeaders> locked = session_.locked_headers(node, from);
    if (!locked.ok()) return locked.status();
    for (const LockedHeader& header : locked->headers) {
      const bool asked = table_ == kNoTable ? header.table != kNoTable : header.table == table_;
      if (asked && (header.gap || header.live)) words_of(header, held);
    }
    from = locked->next;
    if (from == 0) return Status();
  }
  return Status(Code::kCorrupt, "node " + std::to_string(node) + " tells of locks without end");
}

void LockCheck::words_of(const LockedHeader& header, std::vector<Held>& held) {
  if (header.lock != 0) held.push_back({header, Word::kLock, header.lock});
  if (header.waiter != 0) held.push_back({header, Word::kWaiter, header.waiter});
  if (sundial_locked(header.sundial)) held.push_back({header, Word::kSundial, header.sundial});
}

std::optional<WorkerId> LockCheck::worker_of(const Held& held) {
  if (held.word == Word::kLock && locked_shared(held.value)) return std::nullopt;
  return static_cast<WorkerId>(held.value);
}

// Between the two reads of the lines.
bool LockCheck::idle(WorkerId worker) const {
  CHECK(worker < before_.workers.size() && worker < after_.workers.size());
  const WorkerLine &before = before_.workers[worker], &after = after_.workers[worker];
  return before.inside == 0 && after.inside == 0 && before.last_ctts == after.last_ctts &&
         before.incarnation == after.incarnation;
}

// And no reader count of one that has died is still to be swept (engine/log/reader_count_sweep.h).
bool LockCheck::all_idle() const {
  Endpoint& endpoint = session_.scheduler().endpoint();
  for (WorkerId worker = 0; worker < after_.workers.size(); ++worker) {
    const WorkerLine& line = after_.workers[worker];
    const bool dead = line.incarnation != 0 && endpoint.incarnation_of(worker) == 0;
    if (!idle(worker) || line.reader_counts_lost > after_.gate.sweeps) return false;
    if (dead && line.shares != 0) return false;
  }
  return doubts_.unresolved == 0 && doubts_.transactions.empty();
}

bool LockCheck::in_doubt(const Held& held, WorkerId worker) const {
  return std::any_of(doubts_.transactions.begin(), doubts_.transactions.end(),
                     [&](const InDoubt& each) {
                       return each.worker == worker || each.lock_ctts == ctts_of_lock(held.value);
                     });
}

LockCheck::Owner LockCheck::owner_of(const Held& held) const {
  const std::optional<WorkerId> worker = worker_of(held);
  if (!worker) return all_idle() ? Owner::kQuiet : Owner::kSome;
  if (*worker == kOrderWorker) return Owner::kUnknown;
  if (*worker >= after_.workers.size()) return Owner::kQuiet;  // there is no such worker
  // What the node's own threads hold is not reported here.
  if (session_.topology().is_node_worker(*worker) || in_doubt(held, *worker)) return Owner::kSome;
  if (session_.scheduler().endpoint().incarnation_of(*worker) == 0) {
    return doubts_.unresolved == 0 ? Owner::kUnknown : Owner::kSome;
  }
  return idle(*worker) ? Owner::kQuiet : Owner::kUnknown;
}

bool LockCheck::confirmed(Suspect& suspect) const {
  const Held& held = suspect.held;
  switch (owner_of(held)) {
    case Owner::kSome:
      return false;
    case Owner::kQuiet:
      return ++suspect.quiet >= kQuietLooks;
    case Owner::kUnknown:
      break;
  }
  const std::optional<WorkerId> worker = worker_of(held);
  const uint64_t now_us = session_.scheduler().endpoint().now_us();
  if (worker && *worker != kOrderWorker &&
      session_.scheduler().endpoint().incarnation_of(*worker) == 0) {
    return now_us >= suspect.since_us + kResolvedWithinUs;
  }
  // A worker may have locked and released the same header, with the same word, but for a ctts.
  return held.word != Word::kSundial && suspect.epoch != 0 &&
         epoch_of(after_.gate.epoch) >= suspect.epoch + 2;
}

Finding LockCheck::finding_of(const Held& held) const {
  Finding finding;
  finding.kind = kFindingLock;
  finding.table = held.header.table;
  finding.node = held.header.address.node();
  finding.offset = held.header.address.offset();
  const char* const words[] = {"lock", "SUNDIAL's lock", "waiter"};
  finding.detail = std::string(held.header.gap ? "of a group: " : "of a row: ") +
                   words[static_cast<size_t>(held.word)] + " word " + std::to_string(held.value);
  const std::optional<WorkerId> worker = worker_of(held);
  finding.detail += worker ? ", worker " + std::to_string(*worker) + " has no such transaction"
                           : ", shared, but no worker has a transaction";
  return finding;
}

}  // namespace rdmacc
