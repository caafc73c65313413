#pragma once
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// A node of an ordered index, as the row of one record whose key is the node's id:
//
//   0   checksum  8   of all that follows and the id, so that a torn row is known for one
//   8   height    1   0: a leaf     flags 1   1: the high fence is bounded
//   10  count     2   of the items
//   12  low       2   bytes of the low fence      high  2   of the high one
//   16  low fence, high fence, then the items:
//         [bytes 2][bytes][child 8]   the child only in an inner node
//
// A node is in charge of the entries e with low fence <= e < high fence. A leaf's items are its
// entries in memcmp order. An inner node's items are its children, each with the separator that
// is its low fence; the first's is left empty, since it is the node's own. So the low fence of the
// leftmost nodes is empty, which no entry is below.

namespace rdmacc {

using NodeNumber = uint64_t;  // what a tree node's key is made of
constexpr NodeNumber kRootNumber = 1;
// Record size of the tables that hold indexes: nodes up to this need no overflow block.
constexpr uint32_t kIndexRecordSize = 512;
constexpr size_t kNodeKeyBytes = 8;
constexpr size_t kNodeBytesInline = kIndexRecordSize - 4 - kNodeKeyBytes;
// Two keys of 2 KB, and what marks their columns.
constexpr size_t kIndexEntryBytesMax = 4096 + 256;

// Encoded: before the fences, and for an item with so many bytes.
constexpr size_t kNodeHeadBytes = 16;
constexpr size_t encoded_item_bytes(bool leaf, size_t bytes) {
  return sizeof(uint16_t) + bytes + (leaf ? 0 : sizeof(NodeNumber));
}
// Nodes of fewer items are not split, however long these are.
constexpr size_t kItemsToSplit = 4;

// The key of a node's record.
class NodeKey {
 public:
  explicit NodeKey(NodeNumber number);
  std::string_view view() const { return {bytes_, sizeof(bytes_)}; }

 private:
  char bytes_[kNodeKeyBytes];
};

struct NodeItem {
  std::string_view bytes;
  NodeNumber child = 0;
};
using NodeItems = boost::container::small_vector<NodeItem, 48>;

// A place in the order: at an entry, just before one, or behind all.
struct TreePlace {
  enum class Side : uint8_t { kAt, kBefore, kEnd } side = Side::kAt;
  std::string_view entry;
};

// A node's parts; it does not own the bytes.
struct TreeNode {
  uint8_t height = 0;
  bool high_bounded = false;
  std::string_view low, high;
  NodeItems items;

  // Nothing when the bytes are not those of node `number`, whole.
  static std::optional<TreeNode> parse(NodeNumber number, std::string_view row);
  std::string encode(NodeNumber number) const;
  size_t encoded_bytes() const;

  bool leaf() const { return height == 0; }
  // Whether this node, of those of its height, is the one for `place`.
  bool covers(const TreePlace& place) const;
  // Of the first item that is not below `entry`.
  size_t lower_bound(std::string_view entry) const;
  // Of an inner node's child for a place that the node covers.
  size_t child_for(const TreePlace& place) const;
  // The low fence of child `i`.
  std::string_view low_of(size_t i) const { return i == 0 ? low : items[i].bytes; }
};

// The shortest bytes that are above `left` and not above `right`, a part of it.
std::string_view shortest_separator(std::string_view left, std::string_view right);

// A node that is too large for one record, cut in two.
struct SplitNode {
  TreeNode left, right;
  std::string separator;  // both point into it and into the node that was split
};
// Is it to be split? Nodes of long entries get an overflow block rather than fewer items than two
// after a split.
bool must_split(const TreeNode& node);
// `added`: the item whose arrival made it too large. At the right edge of the index, where sorted
// entries arrive, the left part stays full.
void split(const TreeNode& node, size_t added, SplitNode& out);

}  // namespace rdmacc
