#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "rdma/base/check.h"

// A node of an ordered index, as the row of one record whose key is the node's id:
//
//   0   checksum  8   of all that follows and the id, so that a torn row is known for one
//   8   height    1   0: a leaf     flags 1   1: the high fence is bounded
//   10  count     2   of the items
//   12  low       2   bytes of the low fence      high  2   of the high one
//   16  where each item ends among the items' bytes: count x 2
//       only in an inner node, the children: count x 8
//       low fence, high fence, the items' bytes
//
// A node is in charge of the entries e with low fence <= e < high fence. A leaf's items are its
// entries in memcmp order. An inner node's items are its children, each with the separator that
// is its low fence; the first's is left empty, since it is the node's own. So the low fence of the
// leftmost nodes is empty, which no entry is below.
//
// A node is read where it lies: an item is found by its number. node_draft.h changes nodes.

namespace rdmacc {

using NodeNumber = uint64_t;  // what a tree node's key is made of
constexpr NodeNumber kRootNumber = 1;
// Record size of the tables that hold indexes: nodes up to this need no overflow block.
constexpr uint32_t kIndexRecordSize = 512;
constexpr size_t kNodeKeyBytes = 8;
constexpr size_t kNodeBytesInline = kIndexRecordSize - 4 - kNodeKeyBytes;
// Two keys of 2 KB, and what marks their columns.
constexpr size_t kIndexEntryBytesMax = 4096 + 256;

struct NodeHead {
  uint64_t checksum;
  uint8_t height, flags;
  uint16_t count, low_bytes, high_bytes;
};
constexpr uint8_t kNodeHighBounded = 1;  // a flag
constexpr size_t kNodeHeadBytes = 16;
static_assert(sizeof(NodeHead) == kNodeHeadBytes);
using ItemEnd = uint16_t;
// No engine makes a larger node: from four items on, one that outgrows its record is split.
constexpr size_t kNodeItemsMax = 1024, kNodeItemBytesMax = 32 * 1024;
static_assert(kNodeItemBytesMax + kIndexEntryBytesMax <= UINT16_MAX);
// Of an item with so many bytes.
constexpr size_t encoded_item_bytes(bool leaf, size_t bytes) {
  return sizeof(ItemEnd) + bytes + (leaf ? 0 : sizeof(NodeNumber));
}
uint64_t checksum_of_node(NodeNumber number, std::string_view row);

// Of the first of `count` items, in their order, that is not below `entry`. `item`: of a number.
template <typename Item>
size_t first_not_below(std::string_view entry, size_t count, const Item& item) {
  size_t begin = 0;
  while (begin < count) {
    const size_t middle = begin + (count - begin) / 2;
    if (item(middle) < entry)
      begin = middle + 1;
    else
      count = middle;
  }
  return begin;
}

// The key of a node's record.
class NodeKey {
 public:
  explicit NodeKey(NodeNumber number);
  std::string_view view() const { return {bytes_, sizeof(bytes_)}; }

 private:
  char bytes_[kNodeKeyBytes];
};

// A place in the order: at an entry, just before one, or behind all.
struct TreePlace {
  enum class Side : uint8_t { kAt, kBefore, kEnd } side = Side::kAt;
  std::string_view entry;
};

// What a node is in charge of.
struct NodeFrame {
  uint8_t height = 0;
  bool high_bounded = false;
  std::string_view low, high;

  bool leaf() const { return height == 0; }
  // Whether this node, of those of its height, is the one for `place`.
  bool covers(const TreePlace& place) const;
};

// A node in a row that outlives it.
class TreeNode : public NodeFrame {
 public:
  TreeNode() = default;  // a leaf without entries, in charge of all

  // Of a row that was read by the protocol: nothing when it is no node's. Whatever a peer may have
  // put there, items lie within the row, and one behind the other.
  static std::optional<TreeNode> parse(std::string_view row);
  // The same of a row that may be torn, or another node's.
  static std::optional<TreeNode> parse_checked(NodeNumber number, std::string_view row);

  size_t size() const { return count_; }
  std::string_view item(size_t i) const {
    CHECK(i < count_);
    const size_t begin = i == 0 ? 0 : end_of(i - 1);
    return {bytes_.data() + begin, end_of(i) - begin};
  }
  NodeNumber child(size_t i) const;  // of an inner node

  // Of the first item that is not below `entry`.
  size_t lower_bound(std::string_view entry) const {
    return first_not_below(entry, count_, [this](size_t i) { return item(i); });
  }
  // Of an inner node's child for a place that the node covers.
  size_t child_for(const TreePlace& place) const;
  // The low fence of child `i`.
  std::string_view low_of(size_t i) const { return i == 0 ? low : item(i); }

 private:
  size_t end_of(size_t i) const {
    ItemEnd end = 0;
    std::memcpy(&end, ends_ + i * sizeof(end), sizeof(end));
    return end;
  }

  size_t count_ = 0;
  const char* ends_ = nullptr;
  const char* children_ = nullptr;
  std::string_view bytes_;  // of the items
};

}  // namespace rdmacc
