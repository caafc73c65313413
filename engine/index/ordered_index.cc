#include "engine/index/ordered_index.h"

namespace rdmacc {
namespace {

constexpr int kNumbersDrawnMax = 16;

bool holds(const TreeNode& leaf, size_t at, std::string_view entry) {
  return at < leaf.items.size() && leaf.items[at].bytes == entry;
}

}  // namespace

Status check_index_entry(std::string_view entry) {
  if (entry.size() <= kIndexEntryBytesMax) return Status();
  return Status(Code::kTooLarge, "the index entry has " + std::to_string(entry.size()) +
                                     " bytes, the limit is " + std::to_string(kIndexEntryBytesMax));
}

// There is no allocator of ids: they are drawn, and one that is taken is drawn again.
Status insert_new_node(Session& session, const IndexRef& index, const TreeNode& node,
                       NodeNumber& number) {
  for (int i = 0; i < kNumbersDrawnMax; i++) {
    number = session.draw_number();
    if (number <= kRootNumber) continue;
    const Status status = session.insert(index.table, NodeKey(number).view(), node.encode(number));
    if (status.code() != Code::kDuplicateKey) return status;
  }
  return Status(Code::kNoSpace, "no id is free for a node of an ordered index");
}

// The leaf for the entry, and where in it the entry is or would be.
Status OrderedIndex::find(std::string_view entry, Descent& descent, FoundNode& leaf, size_t& at) {
  CHECK(index_.table != kNoTable);
  RDMACC_RETURN_IF_ERROR(check_index_entry(entry));
  RDMACC_RETURN_IF_ERROR(descent.find_leaf({TreePlace::Side::kAt, entry}, leaf));
  at = leaf.node.lower_bound(entry);
  return Status();
}

Status OrderedIndex::insert(std::string_view entry, LeafAccess access) {
  Descent descent(session_, index_, kEveryCommand, access);
  FoundNode leaf;
  size_t at = 0;
  RDMACC_RETURN_IF_ERROR(find(entry, descent, leaf, at));
  TreeNode& node = leaf.node;
  if (holds(node, at, entry)) return Status(Code::kDuplicateKey);
  node.items.insert(node.items.begin() + static_cast<ptrdiff_t>(at), NodeItem{entry});
  if (leaf.exists) return store(leaf, node, at, descent.path());
  return session_.insert(index_.table, NodeKey(kRootNumber).view(), node.encode(kRootNumber));
}

Status OrderedIndex::remove(std::string_view entry) {
  Descent descent(session_, index_);
  FoundNode leaf;
  size_t at = 0;
  RDMACC_RETURN_IF_ERROR(find(entry, descent, leaf, at));
  TreeNode& node = leaf.node;
  if (!leaf.exists || !holds(node, at, entry)) return Status(Code::kNotFound);
  node.items.erase(node.items.begin() + static_cast<ptrdiff_t>(at));
  return session_.amend(index_.table, NodeKey(leaf.number).view(), node.encode(leaf.number));
}

// Writes a node that has got one more item, in as many records as it takes now.
Status OrderedIndex::store(const FoundNode& place, const TreeNode& changed, size_t added,
                           TreePath path) {
  CHECK(place.exists && added < changed.items.size());
  if (!must_split(changed)) {
    return session_.amend(index_.table, NodeKey(place.number).view(), changed.encode(place.number));
  }
  if (place.number == kRootNumber) return grow_root(changed, added);
  return split_below_root(place, changed, added, path);
}

// The root's content moves into two children, and the root is their parent.
Status OrderedIndex::grow_root(const TreeNode& root, size_t added) {
  SplitNode halves;
  split(root, added, halves);
  TreeNode grown;
  grown.height = static_cast<uint8_t>(root.height + 1);
  grown.items.resize(2);
  grown.items[1].bytes = halves.separator;
  RDMACC_RETURN_IF_ERROR(insert_new_node(session_, index_, halves.left, grown.items[0].child));
  RDMACC_RETURN_IF_ERROR(insert_new_node(session_, index_, halves.right, grown.items[1].child));
  return session_.amend(index_.table, NodeKey(kRootNumber).view(), grown.encode(kRootNumber));
}

// The right half moves into a new node, of which the parent is told; it may have to be split, too.
// `path` is where the hints have led: the parent is read by the protocol before it is believed.
Status OrderedIndex::split_below_root(const FoundNode& place, const TreeNode& changed, size_t added,
                                      const TreePath& path) {
  CHECK(place.number != kRootNumber && !changed.items.empty());
  SplitNode halves;
  split(changed, added, halves);
  NodeItem told;
  told.bytes = halves.separator;
  RDMACC_RETURN_IF_ERROR(insert_new_node(session_, index_, halves.right, told.child));
  const std::string left = halves.left.encode(place.number);

  Descent upward(session_, index_);
  FoundNode parent;
  const TreePlace at_low{TreePlace::Side::kAt, changed.low};
  const auto height = static_cast<uint8_t>(changed.height + 1);
  RDMACC_RETURN_IF_ERROR(upward.find_inner(at_low, height, path, parent));
  NodeItems& children = parent.node.items;
  const size_t child = parent.node.child_for(at_low);
  if (children[child].child != place.number || parent.node.low_of(child) != changed.low) {
    return session_.abort_on_conflict();
  }
  children.insert(children.begin() + static_cast<ptrdiff_t>(child) + 1, told);
  RDMACC_RETURN_IF_ERROR(store(parent, parent.node, child + 1, upward.path()));
  return session_.amend(index_.table, NodeKey(place.number).view(), left);
}

}  // namespace rdmacc
