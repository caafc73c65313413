// A node as bytes: what was written is read back, nothing else is taken for a node, and halves
// divide what the whole had.
#include "engine/index/tree_node.h"

#include <gtest/gtest.h>

#include "rdma/base/random.h"

namespace rdmacc {
namespace {

using Side = TreePlace::Side;

TreeNode leaf_of(std::initializer_list<std::string_view> entries) {
  TreeNode node;
  for (const std::string_view entry : entries) node.items.push_back({entry});
  return node;
}

TreeNode inner_node() {
  TreeNode node;
  node.height = 2;
  node.low = "b";
  node.high = "t";
  node.high_bounded = true;
  node.items = {{"", 7}, {"g", 8}, {"gh", 9}};
  return node;
}

TEST(TreeNode, IsReadBackAsItWasWritten) {
  const std::string row = inner_node().encode(5);
  EXPECT_EQ(row.size(), inner_node().encoded_bytes());
  const auto node = TreeNode::parse(5, row);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->height, 2);
  EXPECT_TRUE(node->high_bounded);
  EXPECT_EQ(node->low, "b");
  EXPECT_EQ(node->high, "t");
  ASSERT_EQ(node->items.size(), 3u);
  EXPECT_EQ(node->items[2].bytes, "gh");
  EXPECT_EQ(node->items[2].child, 9u);
}

TEST(TreeNode, TornBytesAreNoNode) {
  const std::string row = inner_node().encode(5);
  EXPECT_FALSE(TreeNode::parse(6, row).has_value());
  EXPECT_FALSE(TreeNode::parse(5, row + "x").has_value());
  for (size_t bytes = 0; bytes < row.size(); bytes++) {
    EXPECT_FALSE(TreeNode::parse(5, row.substr(0, bytes)).has_value()) << bytes;
    std::string torn = row;
    torn[bytes] = static_cast<char>(torn[bytes] ^ 1);
    EXPECT_FALSE(TreeNode::parse(5, torn).has_value()) << bytes;
  }
}

TEST(TreeNode, KnowsItsPlaces) {
  const TreeNode node = inner_node();
  EXPECT_TRUE(node.covers({Side::kAt, "b"}));
  EXPECT_FALSE(node.covers({Side::kAt, "t"}));
  EXPECT_FALSE(node.covers({Side::kBefore, "b"}));
  EXPECT_TRUE(node.covers({Side::kBefore, "t"}));
  EXPECT_FALSE(node.covers({Side::kEnd, {}}));
  EXPECT_TRUE(TreeNode().covers({Side::kEnd, {}}));
  EXPECT_TRUE(TreeNode().covers({Side::kAt, ""}));

  EXPECT_EQ(node.child_for({Side::kAt, "b"}), 0u);
  EXPECT_EQ(node.child_for({Side::kAt, "f"}), 0u);
  EXPECT_EQ(node.child_for({Side::kAt, "g"}), 1u);
  EXPECT_EQ(node.child_for({Side::kBefore, "g"}), 0u);
  EXPECT_EQ(node.child_for({Side::kBefore, "ga"}), 1u);
  EXPECT_EQ(node.child_for({Side::kAt, "s"}), 2u);
  EXPECT_EQ(node.child_for({Side::kEnd, {}}), 2u);
}

TEST(TreeNode, EntriesAreUnsignedBytes) {
  const TreeNode leaf = leaf_of({"\x01", "\x7f", "\x80", "\xff"});
  EXPECT_EQ(leaf.lower_bound("\x80"), 2u);
  EXPECT_EQ(leaf.lower_bound("\xfe"), 3u);
}

TEST(TreeNode, SeparatorsAreTheShortestThatSeparate) {
  SplitNode halves;
  TreeNode leaf = leaf_of({"apple", "apricot", "banana", "bananas"});
  leaf.high_bounded = true;
  leaf.high = "c";
  split(leaf, 0, halves);
  EXPECT_EQ(halves.separator, "b");
  EXPECT_EQ(halves.left.high, "b");
  EXPECT_EQ(halves.right.low, "b");
  leaf = leaf_of({"ban", "bananas"});
  split(leaf, 0, halves);
  EXPECT_EQ(halves.separator, "bana");
}

TEST(TreeNode, TheLeftHalfStaysFullAtTheRightEdge) {
  SplitNode halves;
  TreeNode leaf = leaf_of({"a", "b", "c", "d", "e"});
  split(leaf, 4, halves);
  EXPECT_EQ(halves.left.items.size(), 4u);
  EXPECT_EQ(halves.right.items.size(), 1u);
  leaf.high_bounded = true;
  leaf.high = "x";
  split(leaf, 4, halves);
  EXPECT_EQ(halves.left.items.size(), 2u);
}

// Random nodes, split: the halves are in charge of all that the whole was, each of its own.
TEST(TreeNode, HalvesDivideTheWhole) {
  Random random(3);
  for (int round = 0; round < 500; round++) {
    std::vector<std::string> bytes;
    for (uint64_t i = 0; i < 4 + random.below(40); i++) {
      bytes.push_back(std::string(random.below(30), 'm') + std::to_string(random.below(1000)));
    }
    std::sort(bytes.begin(), bytes.end());
    bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
    if (bytes.size() < 3) continue;
    TreeNode node;
    node.height = static_cast<uint8_t>(random.below(2));
    node.high_bounded = random.percent(50);
    node.high = "z";
    for (uint64_t i = 0; i < bytes.size(); i++) node.items.push_back({bytes[i], i + 10});
    if (!node.leaf()) node.items[0].bytes = {};
    SplitNode halves;
    split(node, random.below(node.items.size()), halves);
    EXPECT_EQ(halves.left.high_bounded, true);
    EXPECT_EQ(halves.right.high_bounded, node.high_bounded);
    EXPECT_EQ(halves.left.items.size() + halves.right.items.size(), node.items.size());
    ASSERT_FALSE(halves.left.items.empty() || halves.right.items.empty());
    const std::string row = halves.right.encode(4);
    const auto right = TreeNode::parse(4, row);
    ASSERT_TRUE(right.has_value());
    for (const std::string& entry : bytes) {
      const TreePlace place{Side::kAt, entry};
      const TreeNode& half = halves.left.covers(place) ? halves.left : *right;
      EXPECT_NE(halves.left.covers(place), right->covers(place));
      if (node.leaf()) {
        EXPECT_EQ(half.items[half.lower_bound(entry)].bytes, entry);
      } else {
        EXPECT_EQ(half.items[half.child_for(place)].child, node.items[node.child_for(place)].child);
      }
    }
  }
}

}  // namespace
}  // namespace rdmacc
