#include "engine/txn/transaction/scan_ranges.h"

#include <algorithm>
#include <bit>

#include "rdma/base/check.h"

namespace rdmacc {

namespace {

// Of the group at a place of a partition: it is at every place that has its bits, so at the one
// that differs in the next bit alone.
uint32_t depth_at(std::span<const uint64_t> groups, uint64_t place) {
  auto depth = static_cast<uint32_t>(std::countr_zero(groups.size()));
  while (depth > 0 && groups[place ^ (1ull << (depth - 1))] == groups[place]) depth--;
  return depth;
}

// Groups that have a range.
class SeenGroups {
 public:
  explicit SeenGroups(size_t count_max) : table_(std::bit_ceil(2 * count_max + 1)) {}

  // False for one that was there.
  bool add(uint64_t group) {
    const uint64_t mask = table_.size() - 1;
    uint64_t at = (group * 0x9E37'79B9'7F4A'7C15) >> 32;
    while (table_[at & mask] != 0 && table_[at & mask] != group + 1) at++;
    if (table_[at & mask] != 0) return false;
    table_[at & mask] = group + 1;
    return true;
  }

 private:
  std::vector<uint64_t> table_;
};

}  // namespace

// From the deepest level up: `uniform` says of each range of the level whether one group is at all
// of its places. Such ranges whose parent is not one are those of the groups.
bool is_partition(std::span<const uint64_t> groups) {
  if (!std::has_single_bit(groups.size())) return false;
  std::vector<uint8_t> uniform(groups.size(), 1);
  SeenGroups seen(groups.size());
  for (uint64_t ranges = groups.size() / 2; ranges > 0; ranges /= 2) {
    for (uint64_t bits = 0; bits < ranges; bits++) {
      const uint64_t other = bits + ranges;
      const bool both = uniform[bits] != 0 && uniform[other] != 0;
      const bool one_group = both && groups[bits] == groups[other];
      if (!one_group) {
        if (uniform[bits] != 0 && !seen.add(groups[bits])) return false;
        if (uniform[other] != 0 && !seen.add(groups[other])) return false;
      }
      uniform[bits] = one_group ? 1 : 0;
    }
  }
  return true;
}

// The walk turns the bits of its ranges upside down, so that no hardware foresees its places.
[[gnu::always_inline]] inline void RangeWalk::prefetch(const CachedRoot& root) const {
  constexpr uint32_t kAheadBits = 3;  // eight ranges
  const uint64_t half = root.groups.size() / 2;
  if (depth_ <= kAheadBits || half == 0) return;
  uint64_t bits = bits_;
  uint32_t at = depth_ - kAheadBits;
  while (at > 0 && (bits >> (at - 1) & 1) != 0) bits ^= 1ull << --at;
  if (at > 0) bits |= 1ull << (at - 1);
  const uint64_t place = bits & (root.groups.size() - 1);
  __builtin_prefetch(&root.groups[place]);
  __builtin_prefetch(&root.groups[place ^ half]);
}

namespace {

constexpr uint32_t kDepthBits = 6;
static_assert(kDepthMax < 1u << kDepthBits && kDepthMax + kDepthBits <= 32);

}  // namespace

TableWalk TableWalk::unpack(uint64_t word) {
  const HashRange next{(word & 0xFFFF'FFFF) >> kDepthBits,
                       static_cast<uint32_t>(word & ((1u << kDepthBits) - 1))};
  return {static_cast<NodeId>(word >> 32), RangeWalk(next)};
}

uint64_t TableWalk::pack() const {
  const HashRange next = ranges.position();
  return uint64_t{node} << 32 | next.bits << kDepthBits | next.depth;
}

void TableWalk::go_on() {
  if (ranges.ended()) *this = {static_cast<NodeId>(node + 1), RangeWalk()};
}

HashRange RangeWalk::next(CachedRoot& root) {
  CHECK(!ended_);
  prefetch(root);
  if (!root.partition) root.partition = is_partition(root.groups);
  HashRange range{bits_, depth_};
  if (*root.partition) {
    range.depth = std::max(depth_, depth_at(root.groups, bits_ & (root.groups.size() - 1)));
  }
  // The next one has the lowest bit that is not set in this one, and not those above it.
  depth_ = range.depth;
  while (depth_ > 0 && (bits_ >> (depth_ - 1) & 1) != 0) bits_ ^= 1ull << --depth_;
  ended_ = depth_ == 0;
  if (!ended_) bits_ |= 1ull << (depth_ - 1);
  return range;
}

}  // namespace rdmacc
