#pragma once
#include "engine/verify/verify.h"

namespace rdmacc {

// A table as transactions see it: every row that a scan gives is found by its key, once, on the
// node where its key belongs; and a scan gives every row that the owners' audit has counted.
//
// Only a transaction that has committed, which is one that has seen a single moment of the table,
// is believed. A key that a look-up misses after a scan may have been deleted: both are done
// again, for all such keys, in one transaction. Rows are counted while no transaction changes any.
class LookUpCheck {
 public:
  LookUpCheck(Session& session, const VerifyOptions& options, TableId table, NodeId nodes)
      : session_(session), options_(options), table_(table), nodes_(nodes) {}

  Status run(std::vector<Finding>& findings);
  // After run(), on a table that is sound so far.
  Status count(std::vector<Finding>& findings);
  uint64_t rows() const { return keys_.size(); }

 private:
  Status scan_keys(std::vector<std::string>& keys, std::vector<NodeId>* nodes);
  Status scan_in_transaction(std::vector<std::string>& keys, std::vector<NodeId>* nodes);
  Status find_missing(std::vector<std::string>& missing);
  Status look_up(std::span<const std::string> keys, std::vector<std::string>& missing);
  Status confirm(const std::vector<std::string>& missing, std::vector<Finding>& findings);
  Result<uint64_t> audited_rows();
  void add(const char* kind, const std::string& key, NodeId node, std::string detail,
           std::vector<Finding>& findings) const;

  Session& session_;
  const VerifyOptions& options_;
  const TableId table_;
  const NodeId nodes_;
  std::vector<std::string> keys_;
};

// Runs `body` in transactions, each begun for it and committed after it, until one commits; the
// later ones ask for exclusive gate mode. kAborted when none does.
Status transact(Session& session, const VerifyOptions& options,
                const std::function<Status()>& body);

}  // namespace rdmacc
