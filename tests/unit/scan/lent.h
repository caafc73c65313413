#pragma once
#include <vector>

#include "engine/session.h"

namespace rdmacc {

// What a guest has lent, in memory of the test; the guest has ended.
class Lent {
 public:
  explicit Lent(Session& guest) : bytes_((guest.bytes_to_lend() + 63) / 64) {
    if (!bytes_.empty()) guest.lend(bytes_.data()->bytes);
    guest.abort();
  }
  size_t bytes() const { return bytes_.size() * sizeof(Line); }
  Status to(Session& host) {
    if (bytes_.empty()) return Status();
    return host.borrow({bytes_.data()->bytes, bytes()});
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> bytes_;
};

}  // namespace rdmacc
