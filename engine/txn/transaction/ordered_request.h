#pragma once
#include <string>
#include <vector>

#include "engine/txn/rule/access.h"
#include "engine/txn/rule/stage.h"
#include "rdma/coroutine/doorbell_batch.h"

// A transaction as a deterministic protocol takes it: what it has read, or will read, and what it
// writes, handed over as a whole to be executed at its place in a global order (docs/protocols.md
// §3.6). Transaction::commit makes one of an interactive transaction (its run was the
// reconnaissance); a caller that knows the keys beforehand makes one that names a procedure.

namespace rdmacc {

struct OrderedRead {
  TableId table = kNoTable;
  std::string key;
  // What the reconnaissance saw (procedures: unused): the row's stamp, or the gap header's.
  bool found = false;
  uint64_t version = 0;
};

// A scanned group of an index: its gap header as it was, which says what entries it has, and a
// digest of the tuples that these name. In any order of the tuples.
struct OrderedGroup {
  Access gap;
  uint64_t digest = 0;

  void add(uint64_t offset, uint32_t incarnation, uint64_t wts) {
    uint64_t word = (wts ^ (offset * 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 31) ^ incarnation) * 0x94D049BB133111EBull;
    digest += word ^ (word >> 29);
  }
};

struct OrderedWrite {
  TableId table = kNoTable;
  std::string key;
  bool deleted = false;
  std::string row;  // procedures give it when they are executed
};

struct OrderedRequest {
  uint64_t ctts = 0;  // of the coordinator's attempt: names the request
  StagePlan plan;
  uint32_t procedure = 0;  // 0: none, `reads` are checked and `writes` are final
  std::string inputs;      // of the procedure
  std::vector<OrderedRead> reads;
  std::vector<OrderedGroup> scanned;
  std::vector<OrderedWrite> writes;
  // Of a procedure: it also inserts rows whose keys follow from rows that it declares to write, and
  // no other procedure touches those without declaring these. Any node may have to store them.
  bool derived_inserts = false;
};

// What the execution of one read or write came to.
struct OrderedRow {
  bool found = false;
  uint64_t version = 0;  // stamp of the row; of the gap header when it was not found
  std::string row;       // procedures only
};

struct OrderedOutcome {
  uint64_t stamp = 0;                // wts of what was written
  std::vector<OrderedRow> reads;     // as the request's
  std::vector<OrderedWrite> writes;  // procedures: what was written
  std::string output;                // of the procedure
  bool rolled_back = false;          // by the procedure: nothing was written
  bool may_happen_later = false;     // with `unknown`: nodes may still execute it
};

// Where such requests go. One per coordinator.
class OrderedCommit {
 public:
  virtual ~OrderedCommit() = default;
  // From a coroutine. kOk: executed at all nodes that it writes to, which hold it now. kAborted or
  // what the procedure said: executed without effect. `unknown`: a node was lost, and it may or
  // may not take place.
  virtual Status submit(const OrderedRequest& request, OrderedOutcome& outcome, bool& unknown,
                        VerbCounters& counters) = 0;
};

}  // namespace rdmacc
