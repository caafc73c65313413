#pragma once
#include <map>
#include <tuple>

#include "engine/verify/verify.h"

namespace rdmacc {

// What the nodes' audits (engine/storage/owner/index_audit.h) say of a table, or of units that no
// table leads to, audited again until each suspicion is confirmed or gone:
//
//   structure      seen in two passes, the later one settled: no change was half done
//   slots, blocks  seen in several passes with the same identity, from an epoch of reclamation to
//                  the second one after it: every transaction that may have owned them has ended
//
// A suspicion that is never settled is reported as kFindingBusy; one of a slot or block, which a
// transaction under way may own, is not reported.
class Suspects {
 public:
  // `table`: kNoTable for units.
  Suspects(Session& session, const VerifyOptions& options, TableId table)
      : session_(session), options_(options), table_(table) {}

  // kNotFound: there is no such table.
  Status run(NodeId nodes, std::vector<Finding>& findings);
  // As the first pass had it.
  uint64_t rows() const { return rows_; }

 private:
  using Identity = std::tuple<FaultKind, uint64_t, uint64_t>;  // kind, offset, identity
  struct Suspect {
    Fault fault;
    uint64_t epoch = 0;  // of the first pass
    uint64_t since_us = 0;
    uint32_t looks = 1;
  };
  struct OfNode {
    NodeId node;
    std::map<Identity, Suspect> suspects;
  };
  static Identity identity_of(const Fault& fault) {
    return {fault.kind, fault.offset, fault.identity};
  }

  Status first_look(OfNode& of);
  Status look_again(OfNode& of, std::vector<Finding>& findings);
  bool confirmed(const Suspect& suspect, uint64_t epoch) const;
  bool kept_by_log(const Fault& fault) const;
  Finding finding_of(NodeId node, const Fault& fault) const;

  Session& session_;
  const VerifyOptions& options_;
  const TableId table_;
  uint64_t rows_ = 0;
};

}  // namespace rdmacc
