#pragma once
#include <set>
#include <string>

#include "engine/index/index_scan.h"
#include "engine/session.h"
#include "rdma/base/random.h"

namespace rdmacc {

// An ordered index that one session at a time changes and scans, compared with a set of its
// entries. Sessions of several coordinators take turns, so that the hints of one are stale after
// the other.
class LoneIndex {
 public:
  LoneIndex(const TxnOptions& txn, TableId table, uint64_t seed)
      : txn_(txn), index_{table}, random_(seed) {}

  // One transaction, as often as it takes, while nothing else runs. What is wrong is noted.
  Status turn(Session& session);
  const std::string& violation() const { return violation_; }

 private:
  Status attempt(Session& session);
  Status change(Session& session);
  Status scan(Session& session);
  std::string draw_entry();
  void expect(bool holds, const std::string& what);

  const TxnOptions txn_;
  const IndexRef index_;
  Random random_;
  std::set<std::string> entries_, own_;  // committed; and with the transaction's changes
  std::string violation_;
};

}  // namespace rdmacc
