#include "tests/sim/outside_decider.h"

namespace rdmacc {
namespace {

constexpr uint64_t kSystemId = 0x5157'EA15;
constexpr uint64_t kThinkUsMax = 40;
constexpr uint64_t kLookUsMax = 1'500;
constexpr uint32_t kAbortPercent = 25;
constexpr uint32_t kPutOffPercent = 60;

}  // namespace

bool OutsideDecider::decide(const Gtid& gtid) {
  return decisions_.try_emplace(gtid, !random_.percent(kAbortPercent)).first->second;
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
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, prepare(session, gtid)));
  if (session.active()) {
    session.scheduler().sleep_for(random_.below(kThinkUsMax));
    if (decide(gtid)) {
      RDMACC_RETURN_IF_ERROR(commit_prepared(session));
    } else {
      effect.delta = 0;
      session.abort();
    }
  }
  return effect.doubt.empty() ? Status() : Status(Code::kCorrupt, effect.doubt);
}

Status OutsideDecider::prepare(Session& session, const Gtid& gtid) const {
  std::optional<DoorEnd> under_way;
  if (door_ != nullptr) under_way.emplace(*door_, DoorOp::kPrepare);
  return session.prepare(gtid);
}

Status OutsideDecider::commit_prepared(Session& session) const {
  std::optional<DoorEnd> under_way;
  if (door_ != nullptr) under_way.emplace(*door_, DoorOp::kCommitPrepared);
  return session.commit_prepared();
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
    session.scheduler().sleep_for(1 + random_.below(kLookUsMax));
    look(session);
  }
  serving_ = false;
}

}  // namespace rdmacc
