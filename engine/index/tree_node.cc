#include "engine/index/tree_node.h"

#include <xxhash.h>

#include <utility>

namespace rdmacc {

uint64_t checksum_of_node(NodeNumber number, std::string_view row) {
  CHECK(row.size() >= kNodeHeadBytes);
  constexpr size_t kFrom = sizeof(NodeHead::checksum);
  constexpr uint64_t kOdd = 0x9E37'79B9'7F4A'7C15;  // so that each number changes it another way
  return XXH3_64bits(row.data() + kFrom, row.size() - kFrom) ^ (number * kOdd);
}

NodeKey::NodeKey(NodeNumber number) { memcpy(bytes_, &number, sizeof(bytes_)); }

bool NodeFrame::covers(const TreePlace& place) const {
  switch (place.side) {
    case TreePlace::Side::kAt:
      return low <= place.entry && (!high_bounded || place.entry < high);
    case TreePlace::Side::kBefore:
      return low < place.entry && (!high_bounded || place.entry <= high);
    case TreePlace::Side::kEnd:
      return !high_bounded;
  }
  return false;
}

std::optional<TreeNode> TreeNode::parse(std::string_view row) {
  NodeHead head;
  if (row.size() < sizeof(head)) return std::nullopt;
  memcpy(&head, row.data(), sizeof(head));
  TreeNode node;
  node.height = head.height;
  node.high_bounded = (head.flags & kNodeHighBounded) != 0;
  node.count_ = head.count;
  const size_t ends = node.count_ * sizeof(ItemEnd);
  const size_t children = node.leaf() ? 0 : node.count_ * sizeof(NodeNumber);
  const size_t fences = sizeof(head) + ends + children;
  const size_t items = fences + head.low_bytes + head.high_bytes;
  if (items > row.size() || row.size() - items > kNodeItemBytesMax) return std::nullopt;
  if (node.count_ > kNodeItemsMax || (!node.leaf() && node.count_ == 0)) return std::nullopt;
  node.ends_ = row.data() + sizeof(head);
  node.children_ = node.ends_ + ends;
  node.low = row.substr(fences, head.low_bytes);
  node.high = row.substr(fences + head.low_bytes, head.high_bytes);
  node.bytes_ = row.substr(items);
  size_t end = 0;
  bool rise = true;
  for (size_t i = 0; i < node.count_; i++) {
    const size_t before = std::exchange(end, node.end_of(i));
    rise &= before <= end;
  }
  return rise && end == node.bytes_.size() ? std::optional(node) : std::nullopt;
}

std::optional<TreeNode> TreeNode::parse_checked(NodeNumber number, std::string_view row) {
  uint64_t checksum = 0;
  if (row.size() < kNodeHeadBytes) return std::nullopt;
  memcpy(&checksum, row.data(), sizeof(checksum));
  return checksum == checksum_of_node(number, row) ? parse(row) : std::nullopt;
}

NodeNumber TreeNode::child(size_t i) const {
  CHECK(!leaf() && i < count_);
  NodeNumber number;
  memcpy(&number, children_ + i * sizeof(number), sizeof(number));
  return number;
}

size_t TreeNode::child_for(const TreePlace& place) const {
  CHECK(!leaf() && count_ > 0);
  if (place.side == TreePlace::Side::kEnd) return count_ - 1;
  // The last child whose low fence is not above the entry, or is below it. The first one's empty
  // separator is below all.
  const size_t i = lower_bound(place.entry);
  const bool exact = place.side == TreePlace::Side::kAt && i < count_ && item(i) == place.entry;
  return exact || i == 0 ? i : i - 1;
}

}  // namespace rdmacc
