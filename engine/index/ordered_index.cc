#include "engine/index/ordered_index.h"

#include <algorithm>

namespace rdmacc {
namespace {

constexpr int kNumbersDrawnMax = 16;

TreePlace place_of(const EntryChange& change) { return {TreePlace::Side::kAt, change.entry}; }

// To a leaf whose item `at` is the entry, or the first one above it.
Status apply(const EntryChange& change, NodeDraft& leaf, size_t at, bool& changed) {
  const auto item = leaf.items.begin() + static_cast<ptrdiff_t>(at);
  const bool there = item != leaf.items.end() && item->bytes == change.entry;
  if (change.kind == EntryChange::Kind::kInsert) {
    if (there) return Status(Code::kDuplicateKey);
    leaf.items.insert(item, NodeItem{change.entry});
  } else {
    if (!there && change.kind == EntryChange::Kind::kRemove) return Status(Code::kNotFound);
    if (!there) return Status();
    leaf.items.erase(item);
  }
  changed = true;
  return Status();
}

}  // namespace

Status check_index_entry(std::string_view entry) {
  if (entry.size() <= kIndexEntryBytesMax) return Status();
  return Status(Code::kTooLarge, "the index entry has " + std::to_string(entry.size()) +
                                     " bytes, the limit is " + std::to_string(kIndexEntryBytesMax));
}

// There is no allocator of ids: they are drawn, and one that is taken is drawn again.
Status insert_new_node(Session& session, const IndexRef& index, const NodeDraft& node,
                       NodeNumber& number) {
  for (int i = 0; i < kNumbersDrawnMax; i++) {
    number = session.draw_number();
    if (number <= kRootNumber) continue;
    const Status status = session.insert(index.table, NodeKey(number).view(), node.encode(number));
    if (status.code() != Code::kDuplicateKey) return status;
  }
  return Status(Code::kNoSpace, "no id is free for a node of an ordered index");
}

Status OrderedIndex::insert(std::string_view entry) {
  const EntryChange one{EntryChange::Kind::kInsert, entry};
  return change({&one, 1});
}

Status OrderedIndex::remove(std::string_view entry) {
  const EntryChange one{EntryChange::Kind::kRemove, entry};
  return change({&one, 1});
}

Status OrderedIndex::change(std::span<const EntryChange> changes, LeafAccess access) {
  CHECK(index_.table != kNoTable);
  CHECK(std::is_sorted(changes.begin(), changes.end(),
                       [](const auto& a, const auto& b) { return a.entry < b.entry; }));
  boost::container::small_vector<std::string_view, 8> entries;
  entries.reserve(changes.size());
  for (const EntryChange& each : changes) {
    RDMACC_RETURN_IF_ERROR(check_index_entry(each.entry));
    entries.push_back(each.entry);
  }
  std::span<const std::string_view> left(entries.data(), entries.size());
  while (!left.empty()) {
    size_t done = 0;
    RDMACC_RETURN_IF_ERROR(change_leaves(changes.last(left.size()), left, access, done));
    CHECK(done > 0);
    left = left.subspan(done);
  }
  return Status();
}

// Of the changes the first ones, of leaves that are found together. The way to the next ones is
// another once one of these has been split.
Status OrderedIndex::change_leaves(std::span<const EntryChange> changes,
                                   std::span<const std::string_view> entries, LeafAccess access,
                                   size_t& done) {
  Descent descent(session_, index_, kEveryCommand, access);
  FoundNodes leaves;
  RDMACC_RETURN_IF_ERROR(descent.find_leaves_of(entries, leaves));
  bool split = false;
  for (size_t i = 0; i < leaves.size() && done < changes.size() && !split; i++) {
    // A leaf between them, of which their parent was not told yet, comes first.
    if (i > 0 && !leaves[i].node.covers(place_of(changes[done]))) break;
    size_t made = 0;
    RDMACC_RETURN_IF_ERROR(
        change_leaf(leaves[i], descent.path(), changes.subspan(done), made, split));
    done += made;
  }
  return Status();
}

// Of the changes the first ones, which belong to the leaf and leave it no more than one item too
// large. `split`: it is, and others are left. An index without a root gets one for a single entry.
Status OrderedIndex::change_leaf(const FoundNode& leaf, const TreePath& path,
                                 std::span<const EntryChange> changes, size_t& done, bool& split) {
  NodeDraft node(leaf.node);
  std::optional<size_t> added;
  bool changed = false;
  do {
    const EntryChange& change = changes[done];
    const size_t at = node.lower_bound(change.entry);
    RDMACC_RETURN_IF_ERROR(apply(change, node, at, changed));
    added = change.kind == EntryChange::Kind::kInsert ? std::optional(at) : std::nullopt;
    if (++done == changes.size()) break;
    split = must_split(node);
  } while (leaf.exists && !split && node.covers(place_of(changes[done])));
  if (!changed) return Status();
  if (leaf.exists) return store(leaf, node, added, path);
  return session_.insert(index_.table, NodeKey(kRootNumber).view(), node.encode(kRootNumber));
}

// Writes a node that has been changed, in as many records as it takes now. `added`: the item that
// has made it too large, if it is. One from which something was taken out last may be too large
// still, as the half of another was: it stays whole.
Status OrderedIndex::store(const FoundNode& place, const NodeDraft& changed,
                           std::optional<size_t> added, TreePath path) {
  CHECK(place.exists);
  if (!added || !must_split(changed)) {
    return session_.amend(index_.table, NodeKey(place.number).view(), changed.encode(place.number));
  }
  if (place.number == kRootNumber) return grow_root(changed, *added);
  return split_below_root(place, changed, *added, path);
}

// The root's content moves into two children, and the root is their parent.
Status OrderedIndex::grow_root(const NodeDraft& root, size_t added) {
  SplitNode halves;
  split(root, added, halves);
  NodeDraft grown;
  grown.height = static_cast<uint8_t>(root.height + 1);
  grown.items.resize(2);
  grown.items[1].bytes = halves.separator;
  RDMACC_RETURN_IF_ERROR(insert_new_node(session_, index_, halves.left, grown.items[0].child));
  RDMACC_RETURN_IF_ERROR(insert_new_node(session_, index_, halves.right, grown.items[1].child));
  return session_.amend(index_.table, NodeKey(kRootNumber).view(), grown.encode(kRootNumber));
}

// The right half moves into a new node, of which the parent is told; it may have to be split, too.
// `path` is where the hints have led: the parent is read by the protocol before it is believed.
Status OrderedIndex::split_below_root(const FoundNode& place, const NodeDraft& changed,
                                      size_t added, const TreePath& path) {
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
  const size_t child = parent.node.child_for(at_low);
  if (parent.node.child(child) != place.number || parent.node.low_of(child) != changed.low) {
    return session_.abort_on_conflict();
  }
  NodeDraft grown(parent.node);
  grown.items.insert(grown.items.begin() + static_cast<ptrdiff_t>(child) + 1, told);
  RDMACC_RETURN_IF_ERROR(store(parent, grown, child + 1, upward.path()));
  return session_.amend(index_.table, NodeKey(place.number).view(), left);
}

}  // namespace rdmacc
