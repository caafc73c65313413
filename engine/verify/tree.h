#pragma once
#include <map>

#include "engine/index/tree_node.h"
#include "engine/verify/verify.h"

namespace rdmacc {

// An ordered index (engine/index) as the rows of its table, all read in one transaction: every node
// is whole, and reached from the root once; children stand one below the node that names them, and
// their fences are what it says; items are in order, within the fences.
class TreeCheck {
 public:
  TreeCheck(Session& session, const VerifyOptions& options, TableId table, NodeId nodes)
      : session_(session), options_(options), table_(table), nodes_(nodes) {}

  Status run(std::vector<Finding>& findings);
  uint64_t entries() const { return entries_; }

 private:
  struct Place {  // of a node, as its parent has it
    NodeNumber number;
    int height;  // -1: of the root
    std::string low, high;
    bool high_bounded;
  };
  Status read_nodes(std::vector<Finding>& findings);
  void visit(const Place& place, std::vector<Place>& children);
  void check_items(const Place& place, const TreeNode& node);
  void add(NodeNumber number, std::string detail);

  Session& session_;
  const VerifyOptions& options_;
  const TableId table_;
  const NodeId nodes_;
  std::map<NodeNumber, std::string> rows_;  // that were not reached yet
  std::vector<Finding>* findings_ = nullptr;
  uint64_t entries_ = 0;
};

// Whether a table and an ordered index over it agree: both are read in one transaction.
// `entries_of` appends what the index has to hold for a row; kCorrupt: the row makes no sense.
using EntriesOf = std::function<Status(const RowView& row, std::vector<std::string>& entries)>;
Status check_entries(Session& session, const VerifyOptions& options, TableId table, TableId index,
                     const EntriesOf& entries_of, std::vector<Finding>& findings);

}  // namespace rdmacc
