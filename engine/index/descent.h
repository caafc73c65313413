#pragma once
#include <boost/container/small_vector.hpp>
#include <span>
#include <string_view>

#include "engine/index/tree_node.h"
#include "engine/session.h"

// The way from an index's root to the leaves. Inner nodes are read unvalidated: they are in no read
// set, so that the root is no place where all transactions meet, and what they say is a hint. The
// leaf itself is read by the protocol, and its fences prove that it is the right one: in every
// serializable state the leaves' ranges divide all entries among them, so a leaf that covers a
// place is the only one that does. Where hints lead elsewhere, time and again, the whole way is
// read by the protocol.
//
// What the transaction has written, or read by the protocol, comes before any hint: its own splits
// are seen by `visible_before` as its rows are.

namespace rdmacc {

// Whether a leaf is the one for a place: TreeNode::covers. Tests of the tests put another there.
using Covers = bool (*)(const TreeNode& node, const TreePlace& place);
bool covers_by_fences(const TreeNode& node, const TreePlace& place);

struct IndexRef {
  TableId table = kNoTable;
  Covers covers = covers_by_fences;
};

// The inner nodes above a leaf, the root first.
using TreePath = boost::container::small_vector<NodeNumber, 8>;

// A node as the transaction has read it by the protocol: its bytes are the session's, as a row's
// are that was got.
struct FoundNode {
  NodeNumber number = kRootNumber;
  TreeNode node;
  bool exists = true;  // false: the index has no root yet
};
using FoundNodes = boost::container::small_vector<FoundNode, 2>;

// How the leaf is come by. kLock: it is locked before it is read, as a row is by try_lock(), so
// that what is read of it stays; one that another transaction has locked is waited for, some
// milliseconds at most, and read without a lock then. For a transaction that is about to commit:
// others that want the leaf wait meanwhile.
enum class LeafAccess : uint8_t { kRead, kLock };

class Descent {
 public:
  Descent(Session& session, const IndexRef& index, uint32_t visible_before = kEveryCommand,
          LeafAccess access = LeafAccess::kRead)
      : session_(session), index_(index), visible_before_(visible_before), access_(access) {}

  // How far to read on: the leaves that follow the first one, in the order or against it.
  struct Reach {
    size_t leaves_max = 1;
    bool backward = false;
    bool bounded = false;  // not beyond `bound`, which the scan does not reach
    std::string_view bound = {};
    std::span<const std::string_view> entries = {};  // only leaves of these, as in find_leaves_of()
  };
  // The leaf for `place`, and as many of the following as its parent knows of and `reach` allows.
  // kAborted when what the protocol gave does not fit together: the transaction could not commit.
  Status find_leaves(const TreePlace& place, const Reach& reach, FoundNodes& leaves);
  // Of entries in their order: the leaf of the first one, and those of the following ones that its
  // parent knows of, as many as are read in one batch of rounds. Each once.
  Status find_leaves_of(std::span<const std::string_view> entries, FoundNodes& leaves);
  // Above the leaves that were found last.
  const TreePath& path() const { return path_; }

  // The node at `height` that covers `place`, read by the protocol; path() is above it. The first
  // of `hints` is tried before everything is read from the root.
  Status find_inner(const TreePlace& place, uint8_t height, const TreePath& hints,
                    FoundNode& found);
  // One node by the protocol. found.exists: it is there.
  Status read(NodeNumber number, FoundNode& found);

 private:
  enum class Way : uint8_t { kHints, kProtocol };
  struct Child {
    NodeNumber number;
    std::string_view entry;  // of Reach::entries the first one that has led to it
  };
  using Children = boost::container::small_vector<Child, 2>;

  Status walk(const TreePlace& place, Way way, const Reach& reach, FoundNodes& leaves,
              bool& arrived);
  Status look_at(NodeNumber number, Way way, bool& found);
  Status look_at_hint(NodeNumber number, bool& found);
  Status lock(const Children& leaves);
  Status lock(NodeNumber leaf, bool& busy);
  Children children_for(const TreePlace& place, const Reach& reach) const;
  Children children_of(std::span<const std::string_view> entries, size_t leaves_max) const;
  Status read_leaves(const Children& children, const TreePlace& place, const Reach& reach,
                     FoundNodes& leaves);
  void forget_path();
  Status lose_if_newer();

  Session& session_;
  const IndexRef index_;
  const uint32_t visible_before_;
  const LeafAccess access_;
  TreePath path_;
  TreeNode inner_;  // looked at last; a hint ends as soon as the coroutine yields
};

}  // namespace rdmacc
