// Transactions that another system decides (Session::prepare): how they ended is on disk, and when
// nodes get their rows back, those whose end no log knows are asked for before any row is there.
#include "engine/durable/node_log.h"

namespace rdmacc {
namespace {

constexpr uint64_t kTellEveryUs = 60'000'000;
constexpr size_t kPreparedPerMessage = 1024;

enum class Outcome : uint8_t { kUnknown, kAborted, kCommitted };

}  // namespace

Status NodeLog::log_decision(uint64_t lock_ctts, bool committed) {
  CHECK(lock_ctts != 0 && node() == 0);
  // The copies in memory say so already. Nodes that were never asked to flush theirs do it now.
  if (serving() && committed) return flush_copies(lock_ctts).status();
  RedoDecided decided;
  decided.lock_ctts = lock_ctts;
  decided.committed = committed;
  for (NodeId to = 0; to < topology_.nodes; ++to) {
    Rpc::Bytes request;
    encode(decided, request);
    RDMACC_RETURN_IF_ERROR(call(to, kMethodLogDecided, request, nullptr));
  }
  return Status();
}

Status NodeLog::take_decision(WorkerId from, std::span<const std::byte> request) {
  RedoDecided decided;
  RDMACC_RETURN_IF_ERROR(decode(request, decided));
  const bool of_node_0 = from == topology_.worker_of(0);
  const bool own_abort = from == worker_of_ctts(decided.lock_ctts) && !decided.committed;
  if (!of_node_0 && !own_abort) return Status(Code::kInvalidArgument, "a decision of another");
  if (!serving()) {
    if (of_node_0 && is_settled()) return Status();
    if (!of_node_0 || stored_ == nullptr) return recovering();
    stored_->decide(decided.lock_ctts, decided.committed);
  }
  return wait(append(RedoKind::kDecided, request));
}

Status NodeLog::list_prepared(std::span<const std::byte> request, Rpc::Bytes& reply) {
  MessageReader in(request);
  const uint64_t after = in.u64();
  if (!in.at_end()) return Status(Code::kCorrupt, "request for prepared transactions");
  InDoubtList list;
  list.transactions = stored_->prepared(after, kPreparedPerMessage);
  MessageWriter out(reply);
  write_in_doubt_list(out, list);
  return Status();
}

Status NodeLog::list_outcomes(std::span<const std::byte> request, Rpc::Bytes& reply) {
  if (request.size() % sizeof(uint64_t) != 0) return Status(Code::kCorrupt, "request for outcomes");
  MessageReader in(request);
  MessageWriter out(reply);
  for (size_t i = 0; i < request.size() / sizeof(uint64_t); ++i) {
    const std::optional<bool> committed = stored_->committed(in.u64());
    const Outcome ended = committed.value_or(false) ? Outcome::kCommitted : Outcome::kAborted;
    out.u8(static_cast<uint8_t>(committed ? ended : Outcome::kUnknown));
  }
  return Status();
}

Status NodeLog::ask_for_prepared(NodeId of, std::map<uint64_t, InDoubt>& found) {
  uint64_t after = 0;
  InDoubtList list;
  do {
    Rpc::Bytes request, reply;
    MessageWriter(request).u64(after);
    RDMACC_RETURN_IF_ERROR(call(of, kMethodLogPrepared, request, &reply));
    MessageReader in(reply);
    if (!read_in_doubt_list(in, list)) return Status(Code::kCorrupt, "a list of what is prepared");
    for (const InDoubt& doubt : list.transactions) {
      if (doubt.lock_ctts <= after) return Status(Code::kCorrupt, "an order of what is prepared");
      after = doubt.lock_ctts;
      found.emplace(after, doubt);
    }
  } while (list.transactions.size() == kPreparedPerMessage);
  return Status();
}

// What that node's log knows the end of is told to all, and is open no more.
Status NodeLog::ask_for_outcomes(NodeId of, std::map<uint64_t, InDoubt>& open) {
  for (auto next = open.begin(); next != open.end();) {
    std::vector<uint64_t> some;
    Rpc::Bytes request, reply;
    for (; next != open.end() && some.size() < kPreparedPerMessage; ++next) {
      some.push_back(next->first);
      MessageWriter(request).u64(next->first);
    }
    RDMACC_RETURN_IF_ERROR(call(of, kMethodLogOutcomes, request, &reply));
    MessageReader in(reply);
    for (const uint64_t lock_ctts : some) {
      const uint8_t outcome = in.u8();
      if (!in.ok() || outcome > static_cast<uint8_t>(Outcome::kCommitted)) {
        return Status(Code::kCorrupt, "a list of outcomes");
      }
      if (outcome == static_cast<uint8_t>(Outcome::kUnknown)) continue;
      const bool committed = outcome == static_cast<uint8_t>(Outcome::kCommitted);
      RDMACC_RETURN_IF_ERROR(log_decision(lock_ctts, committed));
      open.erase(lock_ctts);
    }
  }
  return Status();
}

// There are no locks that would keep others from rows of what is open, so there are no rows,
// either.
Status NodeLog::settle_prepared(DoubtTable& doubts) {
  std::map<uint64_t, InDoubt> open;
  for (NodeId of = 0; of < topology_.nodes; ++of) {
    RDMACC_RETURN_IF_ERROR(ask_for_prepared(of, open));
  }
  for (NodeId of = 0; of < topology_.nodes; ++of) {
    RDMACC_RETURN_IF_ERROR(ask_for_outcomes(of, open));
  }
  std::vector<InDoubt> undecided;
  for (const auto& [lock_ctts, doubt] : open) undecided.push_back(doubt);
  doubts.add_stored(std::move(undecided));
  for (uint64_t told_us = 0; doubts.stored() > 0;) {
    const uint64_t now_us = worker_.endpoint().now_us();
    if (told_us == 0 || now_us - told_us > kTellEveryUs) {
      tell(std::to_string(doubts.stored()) +
           " transactions were prepared when memory was lost: nodes wait until the servers that "
           "ran them have said how they ended, or rdmacc.resolve() has");
      told_us = now_us;
    }
    worker_.scheduler().sleep_for(kAskEveryUs);
  }
  return Status();
}

void NodeLog::serve_decisions() {
  worker_.rpc().handle(kMethodLogDecided,
                       [this](WorkerId from, std::span<const std::byte> request, Rpc::Bytes&) {
                         return take_decision(from, request);
                       });
  // Node 0 asks while all get their rows back.
  using List = Status (NodeLog::*)(std::span<const std::byte> request, Rpc::Bytes & reply);
  const auto serve_list = [this](MethodId method, List list) {
    worker_.rpc().handle(
        method, [this, list](WorkerId from, std::span<const std::byte> request, Rpc::Bytes& reply) {
          if (from != topology_.worker_of(0)) return Status(Code::kInvalidArgument);
          if (stored_ == nullptr) return recovering();  // or it has not begun to
          return (this->*list)(request, reply);
        });
  };
  serve_list(kMethodLogPrepared, &NodeLog::list_prepared);
  serve_list(kMethodLogOutcomes, &NodeLog::list_outcomes);
}

}  // namespace rdmacc
