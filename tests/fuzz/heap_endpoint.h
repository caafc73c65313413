#pragma once
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "rdma/fabric/fabric.h"

// An end of no fabric: memory from the heap, a clock that the test moves, datagrams that come from
// the test and go nowhere. What a fuzzed parser or server stands on.

namespace rdmacc {

class HeapEndpoint : public Endpoint {
 public:
  HeapEndpoint() : random_(1) {
    worker_ = 0;
    incarnation_ = 1;
  }

  // poll() delivers it.
  void arrive(WorkerId from, std::span<const std::byte> datagram) {
    arrived_.push_back({from, {datagram.begin(), datagram.end()}});
  }
  void pass_us(uint64_t us) { now_us_ += us; }
  uint64_t sent() const { return sent_; }

  void ring(NodeId, std::span<const Verb>, Completion* completion) override {
    if (completion == nullptr) return;
    completion->failed = true;
    failed_.push_back(completion);
  }
  bool send(WorkerId, std::span<const std::byte>) override {
    ++sent_;
    return true;
  }
  void set_datagram_handler(DatagramHandler handler) override { handler_ = std::move(handler); }
  bool poll() override {
    if (!failed_.empty()) {
      Completion* completion = failed_.front();
      failed_.pop_front();
      completion->finish_one();
      return true;
    }
    if (arrived_.empty()) return false;
    // A copy of its exact size: a read behind its end is seen.
    const auto [from, datagram] = std::move(arrived_.front());
    arrived_.pop_front();
    handler_(from, datagram);
    return true;
  }
  void wait(uint64_t deadline_us) override { now_us_ = std::max(now_us_, deadline_us); }
  uint64_t now_us() override { return now_us_; }
  uint64_t now_ns() override { return now_us_ * 1000; }
  Random& random() override { return random_; }
  Result<std::byte*> allocate_registered(size_t bytes) override {
    if (bytes > kBytesMax) return Status(Code::kNoSpace);
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) & ~size_t{63}));
    blocks_.emplace_back(memory, &std::free);
    return memory;
  }
  std::byte* local_region() override { return nullptr; }
  Status back_region(uint64_t, uint64_t) override { return Status(Code::kNoSpace); }
  uint32_t incarnation_of(WorkerId) override { return 1; }

 private:
  static constexpr size_t kBytesMax = 64 << 20;
  struct Datagram {
    WorkerId from;
    std::vector<std::byte> bytes;
  };
  Random random_;
  DatagramHandler handler_;
  std::deque<Datagram> arrived_;
  std::deque<Completion*> failed_;
  std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> blocks_;
  uint64_t now_us_ = 1, sent_ = 0;
};

}  // namespace rdmacc
