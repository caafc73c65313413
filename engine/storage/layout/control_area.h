#pragma once
#include "engine/storage/layout/region_layout.h"

// The control area of node 0's region: the gate's line, then one line per worker, each written by
// that worker alone (and cleared by the resolution of a dead one), then the slots of each worker's
// transactions (RegionLayout::txn_slot). All access is by verbs, so it works on every fabric.
// engine/cluster/gate.h has the rules of the lines, txn_slots.h those of the slots; the arena reads
// the epochs.

namespace rdmacc {

struct GateLine {
  // open protocol 8 | next protocol 8 | exclusive 16 | generation 32. "Protocol" is ProtocolId + 1,
  // 0 = none. While next != 0 no other enters; the one that sees the gate drained opens it for the
  // longest waiter. exclusive: 1 + the only worker that may enter, 0 = all of the open protocol.
  uint64_t word;
  uint64_t epoch;       // global epoch of reclamation, starts at 2, rises by one; and the era
  uint64_t ctts_floor;  // every ctts of the open protocol is larger
  uint64_t switches;    // how often another protocol was opened
  uint64_t switch_us_sum, switch_us_max;  // from the first waiter's request to the opening
  uint64_t sweeps;  // of reader counts that are completed (engine/log/reader_count_sweep.h)
  uint64_t exclusive_entries;  // how often it was in exclusive mode
};
static_assert(sizeof(GateLine) == 64);

struct WorkerLine {
  uint64_t inside;       // protocol + 1 while this worker has a transaction in the gate, else 0
  uint64_t epoch;        // epoch announced by its oldest transaction, 0 = none under way
  uint64_t last_ctts;    // largest ctts it gave out
  uint64_t waiting_for;  // protocol + 1 that it waits for (128: exclusive), else 0
  uint64_t waiting_since_us;
  uint64_t incarnation;  // of the fabric's worker slot
  uint64_t shares;  // 1: it has begun transactions with shared locks; until the line is cleared
  // 1 + the number of sweeps that it knew to be completed when a reader count of its became
  // unknown; 0 = none.
  uint64_t reader_counts_lost;
};
static_assert(sizeof(WorkerLine) == 64);

// What others may tell a transaction, and ask of it, for as long as it runs: RCBench's table of
// transactions (its section 6.2). A worker's transactions share some, by their ctts. READ in
// ascending order.
struct TxnSlot {
  uint64_t ctts;    // MAAT: of the transaction that has the slot, or had it last
  uint64_t bound;   // MAAT: of its commit time (engine/cluster/txn_slots.h)
  uint64_t latest;  // MAAT: no transaction that had the slot has fixed a later time
  // WOUND_WAIT: the ctts that is wounded. One that another has taken the place of is written again
  // at the next look.
  uint64_t wound;
};
static_assert(sizeof(TxnSlot) == 32);
constexpr uint64_t kTxnSlotsPerWorker = 64;

constexpr uint64_t kFirstEpoch = 2;

// The epoch's word counts epochs in its low bits and eras in the others. A new era begins when
// pages of slots or groups are about to become something else: what a worker has cached of
// addresses in an earlier one is not to be used any more. One word, so that a transaction that
// announces an epoch knows of the eras before it. At the fastest, a thousand epochs and fifty eras
// a second, either lasts for two years at least (page_recycler.h lengthens the pauses).
constexpr uint32_t kEraShift = 36;
constexpr uint64_t kEra = 1ull << kEraShift;
constexpr uint64_t kErasMax = 1ull << (64 - kEraShift);
constexpr uint64_t era_of(uint64_t epoch_word) { return epoch_word >> kEraShift; }
constexpr uint64_t epoch_of(uint64_t epoch_word) { return epoch_word & (kEra - 1); }

// Formats the control area of a fresh region (StorageService::open does). Lines of all workers
// are empty, no protocol is open and the epoch is kFirstEpoch.
void format_control_area(std::byte* region, const RegionLayout& layout);

}  // namespace rdmacc
