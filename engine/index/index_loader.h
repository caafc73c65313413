#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/index/descent.h"
#include "engine/index/node_draft.h"

// Fills an ordered index that is empty with entries that come in order: each node is written once,
// from the leaves up, where an insert of each entry would write its leaf again. Nodes get some room
// for entries to come. What is loaded is there when the transaction commits.

namespace rdmacc {

class IndexLoader {
 public:
  // Of a transaction that has begun; `index` is empty, and nothing else writes to it before the
  // transaction ends. `session` outlives this.
  // With `gathers`, nodes are written by put_in_place() alone.
  IndexLoader(Session& session, const IndexRef& index, bool gathers = false)
      : session_(session), index_(index), gathers_(gathers) {}

  // Above all entries before (kInvalidArgument), and not too long (kTooLarge); else what the
  // session says, which ends the load.
  Status add(std::string_view entry);
  // No more entries come. Without it the index has no root.
  Status finish();

  // Session::load_rows() of the nodes that are full; they are in_place() until the next time.
  Status put_in_place();
  using Row = std::pair<std::string, std::string>;  // key and row of a node
  const std::vector<Row>& in_place() const { return in_place_; }

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
  NodeDraft node_at(size_t height) const;
  Status add_item(size_t height, std::string_view bytes, NodeNumber child);
  Status close(size_t height, const std::string& high);
  Status write(size_t height, const NodeDraft& node);
  void gather(NodeNumber number, const NodeDraft& node);

  Session& session_;
  const IndexRef index_;
  const bool gathers_;
  std::vector<Row> gathered_, in_place_;
  std::deque<OpenNode> open_;  // by height; stays where it is when a higher one comes
  std::string last_;           // that came
};

}  // namespace rdmacc
