#pragma once
#include <deque>
#include <span>
#include <vector>

#include "engine/storage/region_layout.h"
#include "engine/storage/storage_client.h"
#include "rdma/worker.h"

// One coordinator's log rings, one on each node (in RegionLayout::log_ring). The coordinator alone
// writes them, by its own verbs or by asking the node to carry out the same verbs, and alone
// decides what may be overwritten: an entry whose transaction has been installed everywhere.
//
//   head line, 64 B:  position of the oldest entry that may still matter, incarnation of the owner
//   entry:            EntryHeader 48 B, payload, padded to 64; never wraps (a filler entry, or
//                     a too short rest, ends the lap)
//
// An entry counts iff its magic, its own position (so that an earlier lap's bytes never pass), the
// owner's incarnation and its checksum are right; anything else is no entry. A payload larger than
// kInlinePayloadMax is written to segments (overflow blocks of that node) before, and the entry
// lists them.

namespace rdmacc {

enum class LogPayload : uint32_t { kInline = 1, kSegments = 2, kFiller = 3 };

struct LogEntryHeader {
  uint64_t magic;
  uint64_t position;      // bytes since the ring's beginning; place = position mod kLogRingBytes
  uint64_t checksum;      // xxh3 of the whole payload (of all segments' bytes)
  uint64_t lock_ctts;     // of the transaction
  uint32_t payload_bytes; // whole payload
  LogPayload kind;
  uint32_t incarnation;   // of the coordinator's worker slot
  uint32_t stored_bytes;  // bytes behind this header: the payload, or the list of segments
};
static_assert(sizeof(LogEntryHeader) == 48);

struct LogRingHead {
  uint64_t position;
  uint64_t incarnation;
  uint64_t reserved[6];
};
static_assert(sizeof(LogRingHead) == 64);

constexpr uint64_t kLogEntryMagic = 0x4C'6F'67'45'6E'74'72'79ull;
constexpr uint64_t kInlinePayloadMax = kLogRingBytes / 2 - 4096;

// The bytes of one entry, placed on one node: what one_sided writes and an RPC request carries.
struct LogPlacement {
  NodeId node = 0;
  WorkerId ring_of = kNoWorker;
  uint64_t position = 0;
  uint64_t head = 0;           // new head to publish first
  uint32_t incarnation = 0;
  std::span<const std::byte> entry;   // EntryHeader and stored bytes, padded, registered memory
  std::vector<GlobalAddress> segments;  // to be freed once applied
};

// Adds the WRITEs of an entry (head first, then filler if the lap ends, then the entry) to a
// batch. Used by the coordinator, and by the node for itself when the Log stage is RPC.
void add_log_writes(const RegionLayout& layout, const LogPlacement& placement, VerbArena& arena,
                    DoorbellBatch& batch);

class LogWriter {
 public:
  LogWriter(Worker& worker, const Topology& topology, StorageClient& storage);

  // Finds room on every node of `nodes` for a payload and prepares the placements; segments are
  // allocated and written here. Waits (yielding) while a ring is full: its older entries belong
  // to transactions of this worker that are about to be applied. kNoSpace, kUnavailable or
  // kCancelled leave nothing behind.
  Status place(std::span<const std::byte> payload, uint64_t lock_ctts,
               std::span<const NodeId> nodes, VerbArena& arena, const bool* cancelled,
               VerbCounters& counters, std::vector<LogPlacement>& placements);
  // The transaction is installed everywhere (or was aborted after place()): its room may be used
  // again. Frees segments in the background.
  void applied(std::vector<LogPlacement>& placements);

  uint64_t full_waits() const { return full_waits_; }

 private:
  struct Live {  // an entry that still matters
    uint64_t position, end;
    bool applied;
  };
  struct Ring {
    uint64_t tail = 0;
    std::deque<Live> live;
  };

  Worker& worker_;
  const RegionLayout layout_;
  StorageClient& storage_;
  std::vector<Ring> rings_;  // by node
  uint64_t full_waits_ = 0;
};

}  // namespace rdmacc
