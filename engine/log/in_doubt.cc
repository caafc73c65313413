#include "engine/log/in_doubt.h"

namespace rdmacc {
// `of` stays as it is for one of a memory that is gone.
InDoubt* DoubtTable::find(Gtid gtid, OfWorker** of) {
  for (InDoubt& doubt : stored_) {
    if (doubt.gtid == gtid) return &doubt;
  }
  for (auto& [worker, doubts] : doubts_) {
    for (InDoubt& doubt : doubts.transactions) {
      if (doubt.gtid != gtid) continue;
      *of = &doubts;
      return &doubt;
    }
  }
  return nullptr;
}

bool DoubtTable::waits(WorkerId dead) const {
  const auto found = doubts_.find(dead);
  if (found == doubts_.end() || found->second.transactions.empty()) return false;
  return found->second.deciding > 0 || !found->second.decided;
}

// The entry is there during the pass, so that a decision which comes meanwhile is not forgotten.
void DoubtTable::begin_pass(WorkerId dead) {
  const auto found = doubts_.find(dead);
  if (found != doubts_.end()) found->second.decided = false;
}

void DoubtTable::end_pass(WorkerId dead, std::vector<InDoubt> found) {
  for (const InDoubt& doubt : found) CHECK(doubt.worker == dead && !doubt.entries.empty());
  if (found.empty()) {
    doubts_.erase(dead);
    return;
  }
  std::vector<InDoubt>& known = doubts_[dead].transactions;
  // The pass may have looked before what was decided meanwhile.
  for (InDoubt& doubt : found) {
    for (const InDoubt& before : known) {
      if (before.lock_ctts != doubt.lock_ctts) continue;
      doubt.begun = before.begun;
      doubt.decided = before.decided;
    }
  }
  known = std::move(found);
}

void DoubtTable::failed_pass(WorkerId dead) {
  const auto found = doubts_.find(dead);
  if (found != doubts_.end()) found->second.decided = true;
}

void DoubtTable::add_stored(std::vector<InDoubt> found) {
  CHECK(log_decision_ != nullptr && stored_.empty());
  stored_ = std::move(found);
}

Status DoubtTable::decide_stored(const InDoubt& doubt, bool commit) {
  const uint64_t lock_ctts = doubt.lock_ctts;
  const Status status = log_decision_(lock_ctts, commit);
  if (!status.ok()) return status;
  std::erase_if(stored_, [&](const InDoubt& each) { return each.lock_ctts == lock_ctts; });
  return Status();
}

// Every copy says so before anything follows. One that cannot be reached keeps the transaction in
// doubt for now: should node 0 die here, the copies that were reached decide.
Status DoubtTable::decide(Gtid gtid, bool commit) {
  OfWorker* of = nullptr;
  InDoubt* doubt = find(gtid, &of);
  if (doubt == nullptr || doubt->decided) {
    return Status(Code::kNotFound, "no such transaction is in doubt");
  }
  // Some copies may say so already.
  if (doubt->begun.value_or(commit) != commit) {
    return Status(Code::kUnavailable, "the opposite has begun to be told");
  }
  if (of != nullptr && of->deciding > 0) {
    return Status(Code::kUnavailable, "its worker is being resolved");
  }
  doubt->begun = commit;
  if (of == nullptr) return decide_stored(*doubt, commit);
  const WorkerId worker = doubt->worker;
  const uint64_t lock_ctts = doubt->lock_ctts;
  const std::vector<GlobalAddress> entries = doubt->entries;
  CHECK(!entries.empty());
  ++of->deciding;
  VerbArena arena(worker_.pool());
  auto* state = arena.allocate_array<uint64_t>(1);
  Status status = state == nullptr ? out_of_registered_memory() : Status();
  if (status.ok()) {
    *state = commit ? kLogEntryMagic : 0;
    DoorbellBatch batch(worker_.scheduler(), worker_.counters());
    for (const GlobalAddress entry : entries) batch.write(entry, state, sizeof(*state));
    status = batch.execute();
  }
  // What a checkpoint carries over from now on says so, and what it has before is followed by this.
  // A pass waits for it: others see an abort as soon as its locks are gone.
  if (status.ok() && log_decision_ != nullptr) status = log_decision_(lock_ctts, commit);
  // A pass that ended meanwhile has found that it was decided before; what the list has of the
  // worker since then is its successor's.
  const auto still = doubts_.find(worker);
  if (still == doubts_.end() || still->second.deciding == 0) return status;
  --still->second.deciding;
  if (!status.ok()) return status;
  still->second.decided = true;
  if (InDoubt* decided = find(gtid, &of)) decided->decided = true;
  return status;
}

void DoubtTable::serve(std::function<size_t()> unresolved) {
  CHECK(unresolved != nullptr);
  worker_.rpc().handle(
      kMethodListInDoubt, [this, unresolved = std::move(unresolved)](
                              WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
        if (!request.empty()) return Status(Code::kCorrupt, "request for a list");
        InDoubtList list;
        list.unresolved = unresolved();
        list.transactions = stored_;
        for (const auto& [worker, doubts] : doubts_) {
          list.transactions.insert(list.transactions.end(), doubts.transactions.begin(),
                                   doubts.transactions.end());
        }
        MessageWriter out(reply);
        write_in_doubt_list(out, list);
        return Status::ok_status();
      });
  worker_.rpc().handle(kMethodDecideInDoubt,
                       [this](WorkerId, std::span<const std::byte> request, Rpc::Bytes&) {
                         MessageReader in(request);
                         Gtid gtid;
                         gtid.system_id = in.u64();
                         gtid.xid = in.u64();
                         const uint8_t commit = in.u8();
                         if (!in.at_end() || commit > 1) {
                           return Status(Code::kCorrupt, "request to decide a transaction");
                         }
                         return decide(gtid, commit == 1);
                       });
}

Result<InDoubtList> list_in_doubt(Worker& by, const Topology& topology, VerbCounters& counters) {
  Rpc::Call call;
  call.to = topology.worker_of(0);
  call.method = kMethodListInDoubt;
  RDMACC_RETURN_IF_ERROR(by.rpc().call_one(call, counters));
  InDoubtList list;
  MessageReader in(call.reply);
  if (!read_in_doubt_list(in, list)) {
    return Status(Code::kCorrupt, "a list of transactions in doubt");
  }
  return list;
}

Status decide_in_doubt(Worker& by, const Topology& topology, Gtid gtid, bool commit,
                       VerbCounters& counters) {
  Rpc::Call call;
  call.to = topology.worker_of(0);
  call.method = kMethodDecideInDoubt;
  MessageWriter request(call.request);
  request.u64(gtid.system_id);
  request.u64(gtid.xid);
  request.u8(commit ? 1 : 0);
  return by.rpc().call_one(call, counters);
}

}  // namespace rdmacc
