#include "engine/index/descent.h"

#include <algorithm>

namespace rdmacc {
namespace {

constexpr int kHintedWays = 3;           // before the protocol is asked for every node
constexpr int kUnvalidatedReadsMax = 8;  // at a node whose bytes are torn
constexpr uint8_t kHeightMax = 32;
constexpr size_t kLeavesAtOnceMax = 32;  // that are going to be changed
// For a leaf's holder, which is at its commit: 5 us, 10, … 320, and so on, 10 ms in all.
constexpr uint64_t kLockPauseUsMin = 5, kLockPauseUsMax = 320;
constexpr int kLockTriesMax = 36;

Status take(std::string_view row, TreeNode& node) {
  const std::optional<TreeNode> parsed = TreeNode::parse(row);
  if (!parsed) return Status(Code::kCorrupt, "a node of an ordered index");
  node = *parsed;
  return Status();
}

}  // namespace

bool covers_by_fences(const TreeNode& node, const TreePlace& place) { return node.covers(place); }

Status Descent::read(NodeNumber number, FoundNode& found) {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session_.get(index_.table, NodeKey(number).view(), view, visible_before_));
  found.number = number;
  found.exists = view.found;
  return view.found ? take(view.row, found.node) : Status();
}

// The node as a hint, or by the protocol, into inner_.
Status Descent::look_at(NodeNumber number, Way way, bool& found) {
  const NodeKey key(number);
  RowView view;
  if (way == Way::kProtocol) {
    RDMACC_RETURN_IF_ERROR(session_.get(index_.table, key.view(), view, visible_before_));
  } else if (!session_.read_own_sets(index_.table, key.view(), view, visible_before_)) {
    return look_at_hint(number, found);
  }
  found = view.found;
  return found ? take(view.row, inner_) : Status();
}

// What is kept was whole when it came.
Status Descent::look_at_hint(NodeNumber number, bool& found) {
  const NodeKey key(number);
  RowView view;
  RDMACC_RETURN_IF_ERROR(session_.kept_unvalidated_read(index_.table, key.view(), view));
  found = true;
  if (view.found) return take(view.row, inner_);
  for (int look = 0; look < kUnvalidatedReadsMax; look++) {
    RDMACC_RETURN_IF_ERROR(session_.unvalidated_read(index_.table, key.view(), view));
    if (!view.found) break;
    if (const std::optional<TreeNode> whole = TreeNode::parse_checked(number, view.row)) {
      session_.keep_unvalidated_read(index_.table, key.view(), view.row);
      inner_ = *whole;
      return Status();
    }
    session_.scheduler().sleep_for(1);
  }
  found = false;
  return Status();
}

// Up to the first one that stays busy: for one that has most likely lost others need not wait.
Status Descent::lock(const Children& leaves) {
  bool busy = false;
  for (size_t i = 0; i < leaves.size() && !busy; i++) {
    RDMACC_RETURN_IF_ERROR(lock(leaves[i].number, busy));
  }
  return Status();
}

Status Descent::lock(NodeNumber leaf, bool& busy) {
  if (access_ == LeafAccess::kRead) return Status();
  const NodeKey key(leaf);
  uint64_t pause_us = kLockPauseUsMin;
  for (int i = 0; i < kLockTriesMax; i++) {
    const Result<RowLock> lock =
        session_.try_lock(index_.table, key.view(), RowLockMode::kExclusive);
    if (!lock.ok()) return lock.status();
    busy = lock.value() == RowLock::kBusy;
    if (!busy) break;
    session_.scheduler().sleep_for(pause_us);
    pause_us = std::min(2 * pause_us, kLockPauseUsMax);
  }
  return Status();
}

void Descent::forget_path() {
  for (const NodeNumber number : path_) {
    session_.forget_unvalidated_read(index_.table, NodeKey(number).view());
  }
}

// Where rows are read as of a time, an index that was made, or got its first entry, after it seems
// to be empty, whatever rows its table has had by then.
Status Descent::lose_if_newer() {
  const NodeKey root(kRootNumber);
  RowView now;
  session_.forget_unvalidated_read(index_.table, root.view());
  RDMACC_RETURN_IF_ERROR(session_.unvalidated_read(index_.table, root.view(), now));
  return now.found ? session_.abort_on_conflict() : Status();
}

Status Descent::find_leaves_of(std::span<const std::string_view> entries, FoundNodes& leaves) {
  CHECK(!entries.empty());
  const Reach reach{.leaves_max = kLeavesAtOnceMax, .entries = entries};
  return find_leaves({TreePlace::Side::kAt, entries.front()}, reach, leaves);
}

Status Descent::find_leaves(const TreePlace& place, const Reach& reach, FoundNodes& leaves) {
  CHECK(reach.leaves_max > 0);
  for (int attempt = 0; attempt <= kHintedWays; attempt++) {
    const Way way = attempt < kHintedWays ? Way::kHints : Way::kProtocol;
    bool arrived = false;
    leaves.clear();
    RDMACC_RETURN_IF_ERROR(walk(place, way, reach, leaves, arrived));
    if (arrived) return Status();
    forget_path();
  }
  return session_.abort_on_conflict();
}

Status Descent::walk(const TreePlace& place, Way way, const Reach& reach, FoundNodes& leaves,
                     bool& arrived) {
  NodeNumber number = kRootNumber;
  path_.clear();
  for (int step = 0; step < kHeightMax; step++) {
    bool found = false;
    RDMACC_RETURN_IF_ERROR(look_at(number, way, found));
    if (number == kRootNumber && (!found || inner_.leaf())) {
      // The protocol alone knows whether the root is a leaf, or there at all.
      FoundNode root;
      bool busy = false;
      if (found) RDMACC_RETURN_IF_ERROR(lock(kRootNumber, busy));
      RDMACC_RETURN_IF_ERROR(read(kRootNumber, root));
      if (!root.exists) RDMACC_RETURN_IF_ERROR(lose_if_newer());
      if (!root.exists || root.node.leaf()) {
        leaves.push_back(root);
        arrived = true;
        return Status();
      }
      // It has grown since, which the hint has to tell the next one that comes this way.
      session_.forget_unvalidated_read(index_.table, NodeKey(kRootNumber).view());
      RDMACC_RETURN_IF_ERROR(look_at(number, Way::kProtocol, found));
    }
    path_.push_back(number);
    if (!found || inner_.leaf() || !inner_.covers(place)) return Status();
    if (inner_.height == 1) {
      const Children children = children_for(place, reach);
      RDMACC_RETURN_IF_ERROR(lock(children));
      RDMACC_RETURN_IF_ERROR(read_leaves(children, place, reach, leaves));
      arrived = !leaves.empty();
      return Status();
    }
    number = inner_.child(inner_.child_for(place));
  }
  return Status();
}

// Those of inner_ that `reach` allows.
Descent::Children Descent::children_for(const TreePlace& place, const Reach& reach) const {
  CHECK(inner_.height == 1);
  if (!reach.entries.empty()) return children_of(reach.entries, reach.leaves_max);
  const size_t first = inner_.child_for(place);
  Children children;
  for (size_t i = first; i < inner_.size() && children.size() < reach.leaves_max;
       reach.backward ? i-- : i++) {  // below 0 it is larger than all
    if (i != first && reach.bounded) {
      const bool beyond =
          reach.backward ? inner_.low_of(i + 1) <= reach.bound : inner_.low_of(i) >= reach.bound;
      if (beyond) break;
    }
    children.push_back({inner_.child(i), {}});
  }
  CHECK(!children.empty());
  return children;
}

// inner_ covers the first one.
Descent::Children Descent::children_of(std::span<const std::string_view> entries,
                                       size_t leaves_max) const {
  Children children;
  std::string_view end;  // of the latest child's range, unless it is the last one
  for (const std::string_view entry : entries) {
    if (!children.empty() && (end.empty() || entry < end)) continue;
    if (children.size() == leaves_max) break;
    const TreePlace place{TreePlace::Side::kAt, entry};
    if (!children.empty() && !inner_.covers(place)) break;
    const size_t i = inner_.child_for(place);
    end = i + 1 < inner_.size() ? inner_.low_of(i + 1) : inner_.high;
    children.push_back({inner_.child(i), entry});
  }
  CHECK(!children.empty());
  return children;
}

// All at once. What was read is used as far as it fits together.
Status Descent::read_leaves(const Children& children, const TreePlace& place, const Reach& reach,
                            FoundNodes& leaves) {
  boost::container::small_vector<NodeKey, 2> keys;
  boost::container::small_vector<std::string_view, 2> asked;
  boost::container::small_vector<RowView, 2> rows(children.size());
  keys.reserve(children.size());
  for (const Child& child : children) asked.push_back(keys.emplace_back(child.number).view());
  RDMACC_RETURN_IF_ERROR(session_.get_many(index_.table, {asked.data(), asked.size()},
                                           {rows.data(), rows.size()}, visible_before_));
  for (size_t i = 0; i < rows.size(); i++) {
    if (!rows[i].found) break;
    FoundNode leaf;
    leaf.number = children[i].number;
    RDMACC_RETURN_IF_ERROR(take(rows[i].row, leaf.node));
    TreePlace next = place;
    if (i > 0 && !reach.entries.empty()) {
      next.entry = children[i].entry;
    } else if (i > 0) {
      const TreeNode& before = leaves.back().node;
      next.side = reach.backward ? TreePlace::Side::kBefore : TreePlace::Side::kAt;
      next.entry = reach.backward ? before.low : before.high;
      if (reach.backward ? next.entry.empty() : !before.high_bounded) break;
    }
    if (!leaf.node.leaf() || !index_.covers(leaf.node, next)) break;
    leaves.push_back(leaf);
  }
  // A parent that does not know its children: the next one that comes this way reads again.
  if (leaves.size() < rows.size()) {
    session_.forget_unvalidated_read(index_.table, NodeKey(path_.back()).view());
  }
  return Status();
}

Status Descent::find_inner(const TreePlace& place, uint8_t height, const TreePath& hints,
                           FoundNode& found) {
  CHECK(height > 0);  // leaves are found by find_leaves()
  path_ = hints;
  if (!hints.empty()) {
    RDMACC_RETURN_IF_ERROR(read(hints.back(), found));
    path_.pop_back();
    if (found.exists && found.node.height == height && found.node.covers(place)) return Status();
  }
  path_.clear();
  NodeNumber number = kRootNumber;
  for (int step = 0; step < kHeightMax; step++) {
    RDMACC_RETURN_IF_ERROR(read(number, found));
    if (!found.exists || found.node.height < height || !found.node.covers(place)) break;
    if (found.node.height == height) return Status();
    path_.push_back(number);
    number = found.node.child(found.node.child_for(place));
  }
  return session_.abort_on_conflict();
}

}  // namespace rdmacc
