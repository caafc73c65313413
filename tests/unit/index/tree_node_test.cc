// A node as bytes: what was written is read back, nothing else is taken for a node, and halves
// divide what the whole had.
#include "engine/index/node_draft.h"

#include <gtest/gtest.h>

#include "rdma/base/random.h"

namespace rdmacc {
namespace {

using Side = TreePlace::Side;

NodeDraft leaf_of(std::initializer_list<std::string_view> entries) {
  NodeDraft node;
  for (const std::string_view entry : entries) node.items.push_back({entry});
  return node;
}

NodeDraft inner_node() {
  NodeDraft node;
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
  const auto node = TreeNode::parse_checked(5, row);
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->height, 2);
  EXPECT_TRUE(node->high_bounded);
  EXPECT_EQ(node->low, "b");
  EXPECT_EQ(node->high, "t");
  ASSERT_EQ(node->size(), 3u);
  EXPECT_EQ(node->item(2), "gh");
  EXPECT_EQ(node->child(2), 9u);
  EXPECT_EQ(NodeDraft(*node).encode(5), row);
}

TEST(TreeNode, TornBytesAreNoNode) {
  const std::string row = inner_node().encode(5);
  EXPECT_FALSE(TreeNode::parse_checked(6, row).has_value());
  EXPECT_FALSE(TreeNode::parse_checked(5, row + "x").has_value());
  for (size_t bytes = 0; bytes < row.size(); bytes++) {
    EXPECT_FALSE(TreeNode::parse_checked(5, row.substr(0, bytes)).has_value()) << bytes;
    std::string torn = row;
    torn[bytes] = static_cast<char>(torn[bytes] ^ 1);
    EXPECT_FALSE(TreeNode::parse_checked(5, torn).has_value()) << bytes;
  }
}

// As a peer may have left them: whatever is made of them lies within the row.
TEST(TreeNode, BytesOfAnyKindLeadNowhereElse) {
  Random random(11);
  const auto within = [](std::string_view part, std::string_view row) {
    return part.empty() ||
           (part.data() >= row.data() && part.data() + part.size() <= row.data() + row.size());
  };
  uint64_t nodes = 0;
  for (int round = 0; round < 100'000; round++) {
    const std::string whole =
        random.percent(50) ? inner_node().encode(5) : leaf_of({"a", "bc"}).encode(5);
    // On the heap and not longer than it seems, so that a sanitizer sees what leads out of it.
    std::vector<char> bytes(whole.begin(), whole.end());
    for (uint64_t i = 0; i < 1 + random.below(4); i++) {
      bytes[8 + random.below(whole.size() - 8)] = static_cast<char>(random.below(256));
    }
    bytes.resize(whole.size() - (random.percent(10) ? random.below(whole.size()) : 0));
    const std::string_view row(bytes.data(), bytes.size());
    const auto node = TreeNode::parse(row);
    if (!node) continue;
    nodes++;
    ASSERT_TRUE(within(node->low, row) && within(node->high, row));
    size_t items = 0;
    for (size_t i = 0; i < node->size(); i++) {
      ASSERT_TRUE(within(node->item(i), row));
      items += node->item(i).size();
    }
    ASSERT_LE(items, row.size());
    ASSERT_LE(node->lower_bound("b"), node->size());
    if (!node->leaf()) {
      ASSERT_LT(node->child_for({Side::kAt, "b"}), node->size());
      static_cast<void>(node->child(node->size() - 1));
    }
  }
  EXPECT_GT(nodes, 1000u);
}

TEST(TreeNode, IsNoneThatIsLargerThanAny) {
  const std::string long_item(kNodeItemBytesMax / 2, 'x');
  EXPECT_TRUE(TreeNode::parse(leaf_of({long_item, long_item}).encode(5)).has_value());
  EXPECT_FALSE(TreeNode::parse(leaf_of({long_item, long_item, "y"}).encode(5)).has_value());
  NodeDraft many;
  many.items.resize(kNodeItemsMax);
  EXPECT_TRUE(TreeNode::parse(many.encode(5)).has_value());
  many.items.resize(kNodeItemsMax + 1);
  EXPECT_FALSE(TreeNode::parse(many.encode(5)).has_value());
}

TEST(TreeNode, KnowsItsPlaces) {
  const std::string row = inner_node().encode(5);
  const TreeNode node = *TreeNode::parse(row);
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
  const NodeDraft leaf = leaf_of({"\x01", "\x7f", "\x80", "\xff"});
  EXPECT_EQ(leaf.lower_bound("\x80"), 2u);
  EXPECT_EQ(leaf.lower_bound("\xfe"), 3u);
  const std::string row = leaf.encode(5);
  EXPECT_EQ(TreeNode::parse(row)->lower_bound("\x80"), 2u);
  EXPECT_EQ(TreeNode::parse(row)->lower_bound("\xff\xff"), 4u);
}

TEST(TreeNode, SeparatorsAreTheShortestThatSeparate) {
  SplitNode halves;
  NodeDraft leaf = leaf_of({"apple", "apricot", "banana", "bananas"});
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
  NodeDraft leaf = leaf_of({"a", "b", "c", "d", "e"});
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
    NodeDraft node;
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
    const std::string rows[] = {node.encode(3), halves.left.encode(3), halves.right.encode(4)};
    const TreeNode whole = *TreeNode::parse_checked(3, rows[0]);
    const TreeNode left = *TreeNode::parse_checked(3, rows[1]);
    const TreeNode right = *TreeNode::parse_checked(4, rows[2]);
    for (const std::string& entry : bytes) {
      const TreePlace place{Side::kAt, entry};
      const TreeNode& half = left.covers(place) ? left : right;
      EXPECT_NE(left.covers(place), right.covers(place));
      if (node.leaf()) {
        EXPECT_EQ(half.item(half.lower_bound(entry)), entry);
        EXPECT_EQ(whole.lower_bound(entry), node.lower_bound(entry));
      } else {
        EXPECT_EQ(half.child(half.child_for(place)), whole.child(whole.child_for(place)));
      }
    }
  }
}

}  // namespace
}  // namespace rdmacc
