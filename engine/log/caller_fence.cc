#include "engine/log/caller_fence.h"

#include <utility>

namespace rdmacc {
namespace {

constexpr uint64_t kPauseUs = 20;

}  // namespace

Rpc::Handler CallerFence::guard(Rpc::Handler handler) {
  CHECK(handler != nullptr);
  return [this, handler = std::move(handler)](WorkerId from, std::span<const std::byte> request,
                                              Rpc::Bytes& reply) {
    // Checked before the first yield: a fence that comes later finds this handler counted or
    // refused.
    if (worker_.endpoint().incarnation_of(from) == 0) {
      return Status(Code::kUnavailable, "the caller is dead");
    }
    begin(from);
    Status status = handler(from, request, reply);
    end(from);
    return status;
  };
}

Status CallerFence::fence(WorkerId dead) {
  if (dead >= running_.size()) return Status(Code::kInvalidArgument, "no such worker");
  const uint64_t deadline_us = worker_.endpoint().now_us() + kFenceUsMax;
  while (true) {
    if (worker_.endpoint().incarnation_of(dead) != 0) {
      return Status(Code::kInvalidArgument, "the worker is alive");
    }
    if (running_[dead] == 0) return Status::ok_status();
    if (worker_.endpoint().now_us() >= deadline_us) {
      return Status(Code::kTimeout, "a request of the dead worker does not end");
    }
    worker_.scheduler().sleep_for(kPauseUs);
  }
}

void serve_fence(Worker& worker, CallerFence& fence) {
  worker.rpc().handle(kMethodFenceCaller,
                      [&fence](WorkerId, std::span<const std::byte> request, Rpc::Bytes&) {
                        MessageReader in(request);
                        const WorkerId dead = in.u16();
                        if (!in.at_end()) return Status(Code::kCorrupt, "fence request");
                        return fence.fence(dead);
                      });
}

}  // namespace rdmacc
