#pragma once
#include <utility>
#include <vector>

#include "rdma/rpc/rpc.h"

namespace rdmacc {

// Bytes of requests and replies that are used again. One thread.
class MessageMemory {
 public:
  Rpc::Bytes take() {
    if (free_.empty()) return {};
    Rpc::Bytes bytes = std::move(free_.back());
    free_.pop_back();
    return bytes;
  }
  void give_back(Rpc::Bytes bytes) {
    constexpr size_t kKept = 128, kBytesKept = 64 * 1024;
    if (free_.size() >= kKept || bytes.capacity() > kBytesKept) return;
    bytes.clear();
    free_.push_back(std::move(bytes));
  }

 private:
  std::vector<Rpc::Bytes> free_;
};

}  // namespace rdmacc
