#pragma once
#include <array>
#include <vector>

#include "engine/txn/driver/engine_context.h"

namespace rdmacc {

// Reads what a group's buckets name, along their chains, between two looks at its gap header: these
// go into `gap`, for its rule to judge, and the offsets of the tuples into `entries`.
class GroupEntries {
 public:
  GroupEntries(StageContext& context, GlobalAddress group, HeaderSnapshot& gap,
               std::vector<uint64_t>& entries)
      : context_(context), group_(group), gap_(gap), entries_(entries) {}

  Status read();

 private:
  GlobalAddress address(uint64_t offset) const {
    return GlobalAddress::make(group_.node(), offset);
  }
  Status read_home();
  Status read_home_in_place();
  Status read_chains();
  uint64_t add(const Bucket& bucket);

  StageContext& context_;
  const GlobalAddress group_;
  HeaderSnapshot& gap_;  // registered
  std::vector<uint64_t>& entries_;
  std::array<uint64_t, kBucketsPerGroup> chains_{};  // offsets of the next buckets
};

}  // namespace rdmacc
