#include "tests/sim/outside_decider.h"

namespace rdmacc {
namespace {

constexpr uint64_t kSystemId = 0x5157'EA15;
constexpr uint64_t kThinkUsMax = 40, kToldUsMax = 300;
constexpr uint32_t kAbortPercent = 25;
constexpr uint32_t kPutOffPercent = 60;

}  // namespace

// What it never heard to be prepared may be found in doubt all the same: Session::prepare.
bool OutsideDecider::decide(const Gtid& gtid) {
  const bool commit = !random_.percent(kAbortPercent) && prepared_.contains(gtid);
  return decisions_.try_emplace(gtid, commit).first->second;
}

std::optional<bool> OutsideDecider::outcome_of(uint64_t ctts) const {
  const auto found = outcomes_.find(ctts);
  return found == outcomes_.end() ? std::nullopt : std::optional<bool>(found->second);
}

Status OutsideDecider::attempt(const Workload& workload, Session& session,
                               const TxnOptions& options, const TxnInputs& inputs,
                               TxnEffect& effect) {
  effect = TxnEffect();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, workload.execute(session, inputs, effect)));
  if (effect.rollback) {
    effect.delta = 0;
    session.abort();
    return Status();
  }
  const Gtid gtid{kSystemId, ++last_xid_};
  std::optional<DoorEnd> prepared;
  if (door_ != nullptr) prepared.emplace(*door_, DoorOp::kPrepare);
  Status status = session.prepare(gtid);
  if (status.ok()) {
    prepared_.insert(gtid);
    if (session.active() && on_prepared_ != nullptr) on_prepared_();
  }
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, std::move(status)));
  if (session.active()) {
    session.scheduler().sleep_for(random_.below(kThinkUsMax));
    const bool commit = decide(gtid);
    if (!commit) effect.delta = 0;
    RDMACC_RETURN_IF_ERROR(tell(session, commit));
  }
  return effect.doubt.empty() ? Status() : Status(Code::kCorrupt, effect.doubt);
}

// The door counts an outcome as under way from the decision on; the session hears of it later.
Status OutsideDecider::tell(Session& session, bool commit) {
  std::optional<DoorEnd> under_way;
  if (door_ != nullptr) {
    under_way.emplace(*door_, commit ? DoorOp::kCommitPrepared : DoorOp::kAbortPrepared);
    session.scheduler().sleep_for(random_.below(kToldUsMax));
  }
  if (commit) return commit_prepared(session);
  session.abort();
  return Status();
}

// It is committed whatever the session says. Which one it was stands in the history, unless others
// of the worker have ended meanwhile: their outcomes may be unknown for another reason.
Status OutsideDecider::commit_prepared(Session& session) {
  const WorkerId worker = session.scheduler().endpoint().worker();
  const size_t begin = history_.transactions().size();
  Status status = session.commit_prepared();
  if (status.ok()) return status;
  std::vector<const HistoryTransaction*> ended;
  for (size_t i = begin; i < history_.transactions().size(); ++i) {
    const HistoryTransaction& each = history_.transactions()[i];
    if (each.worker == worker) ended.push_back(&each);
  }
  const bool certain = ended.size() == 1 && ended[0]->outcome == HistoryOutcome::kUnknown;
  if (certain) outcomes_[ended[0]->ctts] = true;
  return status;
}

void OutsideDecider::look(Session& session) {
  Result<InDoubtList> list = session.in_doubt();
  if (!list.ok()) return;  // node 0 is down
  for (const InDoubt& doubt : list->transactions) {
    if (doubt.decided || random_.percent(kPutOffPercent)) continue;
    const bool commit = decide(doubt.gtid);
    outcomes_[doubt.lock_ctts] = commit;
    // A node that is down is asked again by the next look.
    static_cast<void>(session.decide(doubt.gtid, commit).ok());
  }
}

void OutsideDecider::serve(Session& session) {
  serving_ = true;
  while (!stopped_) {
    session.scheduler().sleep_for(1 + random_.below(look_us_max_));
    look(session);
  }
  serving_ = false;
}

}  // namespace rdmacc
