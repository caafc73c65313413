#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/txn/history.h"

// The serializability checker. A key's versions are ordered by their stamps (every protocol
// guarantees it). It builds the dependency graph of the committed transactions (ww, wr, rw; reads
// of absent keys and scans included) and looks for a cycle; it also reports reads of versions that
// nobody committed, two writers of one version, and inserts of keys that were there.

namespace rdmacc {

struct CheckReport {
  bool serializable = true;
  std::string problem;  // in words: the cycle edge by edge, or the impossible read
  uint64_t transactions = 0, committed = 0, operations = 0, edges = 0;
};

// Versions and keys that the history reads but does not make are taken as loaded before it began
// when `preloaded` is true; otherwise such a read is a problem. A transaction of unknown outcome
// counts as committed if any of its versions was read by others or overwritten by a later stamp
// of a delete/insert that needs it, else it is ignored.
CheckReport check_serializable(std::span<const HistoryTransaction> history, bool preloaded);

}  // namespace rdmacc
