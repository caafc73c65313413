#include "engine/protocols/calvin/order_client.h"

#include "engine/protocols/calvin/sequencer.h"

namespace rdmacc {
namespace {

constexpr uint64_t kNodeReturnUsMax = 15'000'000;
constexpr uint64_t kNodeReturnPauseUs = 1'000;

}  // namespace

Status OrderClient::submit(const OrderedRequest& request, OrderedOutcome& outcome, bool& unknown,
                           VerbCounters& counters) {
  unknown = outcome.may_happen_later = false;
  if (request.writes.size() > kOrderedWritesMax || request.reads.size() > kOrderedKeysMax ||
      request.scanned.size() > kOrderedKeysMax) {
    return Status(Code::kNoSpace, "the transaction has more keys than a deterministic one may");
  }
  CHECK(static_cast<WorkerId>(request.ctts) == worker_.id());  // the node insists on it
  Rpc::Call call;
  call.to = home();
  call.method = kMethodOrderSubmit;
  MessageWriter out(call.request);
  write_request(out, request);
  if (call.request.size() > kOrderedBytesMax) {
    return Status(Code::kNoSpace, "the transaction is longer than the " +
                                      std::to_string(kOrderedBytesMax) +
                                      " bytes that a deterministic one may have");
  }
  const Status sent = worker_.rpc().call_one(call, counters);
  Status status;
  if (sent.ok() && !read_outcome(call.reply, status, outcome)) {
    unknown = outcome.may_happen_later = true;
    return Status(Code::kCorrupt, "the sequencer's answer does not parse");
  }
  if (sent.code() != Code::kUnavailable) return sent.ok() ? status : sent;
  unknown = true;
  const uint64_t deadline_us = worker_.endpoint().now_us() + kNodeReturnUsMax;
  while (worker_.endpoint().now_us() < deadline_us) {
    Rpc::Call settle;
    settle.to = home();
    settle.method = kMethodOrderSettle;
    if (worker_.rpc().call_one(settle, counters).ok()) return sent;
    worker_.scheduler().sleep_for(kNodeReturnPauseUs);
  }
  outcome.may_happen_later = true;
  return sent;
}

}  // namespace rdmacc
