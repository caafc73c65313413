#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "engine/index/descent.h"
#include "engine/index/node_draft.h"

// An ordered index: a set of entries, opaque bytes in memcmp order, that sessions change and read
// in transactions like rows. It is a B-tree whose nodes are the records of one engine table of
// record_size kIndexRecordSize (tree_node.h), spread over the cluster by the hash of their ids; so
// serializability (phantoms included), protocols, stage plans, logs and recovery are those of rows.
// An empty table is an empty index. What an entry names, a row's key, say, is part of its bytes.
//
// A node is split by the transaction whose entry makes it too large for one record. The root keeps
// its id. Nodes that become empty stay, and scans pass them.
//
// Not for procedures of deterministic protocols, which have to name their keys beforehand.

namespace rdmacc {

// kTooLarge: more than kIndexEntryBytesMax bytes.
Status check_index_entry(std::string_view entry);
// Gives a new node a number and writes it.
Status insert_new_node(Session& session, const IndexRef& index, const NodeDraft& node,
                       NodeNumber& number);

struct EntryChange {
  // kInsert: kDuplicateKey if it is there. kRemove: kNotFound if it is not; kRemoveIfThere: done.
  enum class Kind : uint8_t { kInsert, kRemove, kRemoveIfThere } kind = Kind::kInsert;
  std::string_view entry;
};

class OrderedIndex {
 public:
  // Of a transaction that has begun; used by its coroutine. `session` outlives it.
  OrderedIndex(Session& session, const IndexRef& index) : session_(session), index_(index) {}

  // Changes in the order of their entries, those of one entry in the order in which they are made.
  // A leaf is read and written once for as many of them as belong to it, and leaves of one parent
  // are read together. kDuplicateKey, kNotFound;
  // kTooLarge: more than kIndexEntryBytesMax bytes; else what the session says. After an error some
  // of the changes may be there.
  Status change(std::span<const EntryChange> changes, LeafAccess access = LeafAccess::kRead);
  Status insert(std::string_view entry);
  Status remove(std::string_view entry);

 private:
  Status change_leaves(std::span<const EntryChange> changes,
                       std::span<const std::string_view> entries, LeafAccess access, size_t& done);
  Status change_leaf(const FoundNode& leaf, const TreePath& path,
                     std::span<const EntryChange> changes, size_t& done, bool& split);
  Status store(const FoundNode& place, const NodeDraft& changed, std::optional<size_t> added,
               TreePath path);
  Status grow_root(const NodeDraft& root, size_t added);
  Status split_below_root(const FoundNode& place, const NodeDraft& changed, size_t added,
                          const TreePath& path);

  Session& session_;
  const IndexRef index_;
};

}  // namespace rdmacc
