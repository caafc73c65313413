#pragma once
#include <boost/container/small_vector.hpp>
#include <string>

#include "engine/index/tree_node.h"

// Nodes of an ordered index that are made or changed: their parts, which become a row again.

namespace rdmacc {

// Nodes of fewer items are not split, however long these are.
constexpr size_t kItemsToSplit = 4;

struct NodeItem {
  std::string_view bytes;
  NodeNumber child = 0;
};
using NodeItems = boost::container::small_vector<NodeItem, 48>;

// It does not own the bytes.
struct NodeDraft : NodeFrame {
  NodeItems items;

  NodeDraft() = default;
  explicit NodeDraft(const TreeNode& node);  // whose row outlives it

  size_t lower_bound(std::string_view entry) const;  // as TreeNode's
  size_t encoded_bytes() const;
  std::string encode(NodeNumber number) const;
};

// The shortest bytes that are above `left` and not above `right`, a part of it.
std::string_view shortest_separator(std::string_view left, std::string_view right);

// A node that is too large for one record, cut in two.
struct SplitNode {
  NodeDraft left, right;
  std::string separator;  // both point into it and into the node that was split
};
// Is it to be split? Nodes of long entries get an overflow block rather than fewer items than two
// after a split.
bool must_split(const NodeDraft& node);
// `added`: the item whose arrival made it too large. At the right edge of the index, where sorted
// entries arrive, the left part stays full.
void split(const NodeDraft& node, size_t added, SplitNode& out);

}  // namespace rdmacc
