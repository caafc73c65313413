#include "engine/index/tree_node.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint8_t kFlagHighBounded = 1;

struct NodeHead {
  uint64_t checksum;
  uint8_t height, flags;
  uint16_t count, low_bytes, high_bytes;
};
static_assert(sizeof(NodeHead) == kNodeHeadBytes);

uint64_t checksum_of(NodeNumber number, std::string_view row) {
  return XXH3_64bits_withSeed(row.data() + sizeof(uint64_t), row.size() - sizeof(uint64_t), number);
}

size_t item_bytes(const TreeNode& node, size_t i) {
  return encoded_item_bytes(node.leaf(), node.items[i].bytes.size());
}

// Where the larger part is smallest; both get an item.
size_t middle_of(const TreeNode& node) {
  size_t all = 0, left = 0;
  for (size_t i = 0; i < node.items.size(); i++) all += item_bytes(node, i);
  size_t best = 1, best_bytes = all;
  for (size_t cut = 1; cut < node.items.size(); cut++) {
    left += item_bytes(node, cut - 1);
    const size_t larger = std::max(left, all - left);
    if (larger >= best_bytes) continue;
    best = cut;
    best_bytes = larger;
  }
  return best;
}

}  // namespace

std::string_view shortest_separator(std::string_view left, std::string_view right) {
  const auto end = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).second;
  return right.substr(0, static_cast<size_t>(end - right.begin()) + 1);
}

NodeKey::NodeKey(NodeNumber number) { memcpy(bytes_, &number, sizeof(bytes_)); }

std::optional<TreeNode> TreeNode::parse(NodeNumber number, std::string_view row) {
  NodeHead head;
  if (row.size() < sizeof(head)) return std::nullopt;
  memcpy(&head, row.data(), sizeof(head));
  if (head.checksum != checksum_of(number, row)) return std::nullopt;
  TreeNode node;
  node.height = head.height;
  node.high_bounded = (head.flags & kFlagHighBounded) != 0;
  size_t at = sizeof(head);
  // The checksum vouches for what an engine wrote; whatever else a peer may have put there must not
  // lead a reader out of the row.
  bool whole = true;
  const auto take = [&](size_t bytes) {
    whole = whole && bytes <= row.size() - at;
    if (!whole) return std::string_view();
    at += bytes;
    return row.substr(at - bytes, bytes);
  };
  const auto take_number = [&](auto& value) {
    const std::string_view bytes = take(sizeof(value));
    if (whole) memcpy(&value, bytes.data(), sizeof(value));
  };
  node.low = take(head.low_bytes);
  node.high = take(head.high_bytes);
  node.items.resize(head.count);
  for (NodeItem& item : node.items) {
    uint16_t bytes = 0;
    take_number(bytes);
    item.bytes = take(bytes);
    if (!node.leaf()) take_number(item.child);
  }
  if (!whole || at != row.size() || (!node.leaf() && node.items.empty())) return std::nullopt;
  return node;
}

size_t TreeNode::encoded_bytes() const {
  size_t bytes = sizeof(NodeHead) + low.size() + high.size();
  for (size_t i = 0; i < items.size(); i++) bytes += item_bytes(*this, i);
  return bytes;
}

std::string TreeNode::encode(NodeNumber number) const {
  CHECK(items.size() <= UINT16_MAX && low.size() <= UINT16_MAX && high.size() <= UINT16_MAX);
  NodeHead head{};
  head.height = height;
  head.flags = high_bounded ? kFlagHighBounded : 0;
  head.count = static_cast<uint16_t>(items.size());
  head.low_bytes = static_cast<uint16_t>(low.size());
  head.high_bytes = static_cast<uint16_t>(high.size());
  std::string row;
  row.reserve(encoded_bytes());
  const auto put = [&row](const auto& value) {
    row.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  put(head);
  row.append(low).append(high);
  for (const NodeItem& item : items) {
    put(static_cast<uint16_t>(item.bytes.size()));
    row.append(item.bytes);
    if (!leaf()) put(item.child);
  }
  const uint64_t checksum = checksum_of(number, row);
  memcpy(row.data(), &checksum, sizeof(checksum));
  return row;
}

bool TreeNode::covers(const TreePlace& place) const {
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

size_t TreeNode::lower_bound(std::string_view entry) const {
  const auto found =
      std::lower_bound(items.begin(), items.end(), entry,
                       [](const NodeItem& item, std::string_view of) { return item.bytes < of; });
  return static_cast<size_t>(found - items.begin());
}

size_t TreeNode::child_for(const TreePlace& place) const {
  CHECK(!leaf() && !items.empty());
  if (place.side == TreePlace::Side::kEnd) return items.size() - 1;
  // The last child whose low fence is not above the entry, or is below it. The first one's empty
  // separator is below all.
  size_t i = lower_bound(place.entry);
  const bool exact =
      place.side == TreePlace::Side::kAt && i < items.size() && items[i].bytes == place.entry;
  if (!exact && i > 0) i--;
  return i;
}

bool must_split(const TreeNode& node) {
  return node.items.size() >= kItemsToSplit && node.encoded_bytes() > kNodeBytesInline;
}

void split(const TreeNode& node, size_t added, SplitNode& out) {
  CHECK(added < node.items.size());
  CHECK(node.items.size() >= 2);
  const bool arrives_last = !node.high_bounded && added + 1 == node.items.size();
  const size_t cut = arrives_last ? node.items.size() - 1 : middle_of(node);
  out.separator = node.leaf() ? shortest_separator(node.items[cut - 1].bytes, node.items[cut].bytes)
                              : node.items[cut].bytes;
  out.left.height = out.right.height = node.height;
  out.left.low = node.low;
  out.left.high = out.right.low = out.separator;
  out.left.high_bounded = true;
  out.right.high = node.high;
  out.right.high_bounded = node.high_bounded;
  const auto middle = node.items.begin() + static_cast<ptrdiff_t>(cut);
  out.left.items.assign(node.items.begin(), middle);
  out.right.items.assign(middle, node.items.end());
  if (!node.leaf()) out.right.items.front().bytes = {};
}

}  // namespace rdmacc
