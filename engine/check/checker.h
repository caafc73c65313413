#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/txn/transaction/history.h"

// The serializability checker. A key's versions are ordered by their stamps (every protocol
// guarantees it). It builds the dependency graph of the committed transactions (ww, wr, rw; reads
// of absent keys and scans included) and looks for a cycle; it also reports reads of versions that
// no transaction committed, two writers of one version, and inserts of keys that were there. Then,
// if asked, it looks whether the order can respect real time, too.

namespace rdmacc {

struct CheckOptions {
  // Versions and keys that the history reads but does not make are taken as loaded before it
  // began; otherwise such a read is a problem.
  bool preloaded = false;
  // Look at start and end, too. They must be of one clock.
  bool real_time = false;
};

struct CheckReport {
  bool serializable = true;
  std::string problem;  // in words: the cycle edge by edge, or the impossible read

  // With CheckOptions::real_time, of a serializable history: whether one of its serial orders has
  // every transaction that ended before another began before it; the shortest cycle in words if
  // not; and how many transactions must come before one that had ended before they began.
  bool strictly_serializable = true;  // false, too, when it is not serializable
  std::string real_time_problem;
  uint64_t real_time_violations = 0;

  uint64_t transactions = 0, committed = 0, operations = 0, edges = 0;
};

// A transaction of unknown outcome counts as committed if any of its versions was read by others
// or overwritten by a later stamp of a delete/insert that needs it, else it is ignored; as it has
// no end, no transaction begins after it.
CheckReport check_serializable(std::span<const HistoryTransaction> history,
                               const CheckOptions& options);

}  // namespace rdmacc
