#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/index/descent.h"

// Fills an ordered index that is empty with entries that come in order: each node is written once,
// from the leaves up, where an insert of each entry would write its leaf again. Nodes get some room
// for entries to come. What is loaded is there when the transaction commits.

namespace rdmacc {

class IndexLoader {
 public:
  // Of a transaction that has begun; `index` is empty, and nothing else writes to it before the
  // transaction ends. `session` outlives this.
  IndexLoader(Session& session, const IndexRef& index) : session_(session), index_(index) {}

  // Above all entries before (kInvalidArgument), and not too long (kTooLarge); else what the
  // session says, which ends the load.
  Status add(std::string_view entry);
  // No more entries come. Without it the index has no root.
  Status finish();

 private:
  // The node of a height that is being filled.
  struct Item {
    std::string bytes;
    NodeNumber child = 0;
  };
  struct OpenNode {
    std::string low;
    std::vector<Item> items;
    size_t item_bytes = 0;  // of all of them, encoded
  };

  bool has_room(size_t height, size_t bytes) const;
  TreeNode node_at(size_t height) const;
  Status add_item(size_t height, std::string_view bytes, NodeNumber child);
  Status close(size_t height, const std::string& high);
  Status write(size_t height, const TreeNode& node);

  Session& session_;
  const IndexRef index_;
  std::deque<OpenNode> open_;  // by height; stays where it is when a higher one comes
  std::string last_;           // that came
};

}  // namespace rdmacc
