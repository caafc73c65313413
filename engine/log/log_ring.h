#pragma once
#include <deque>
#include <span>
#include <vector>

#include "engine/log/log_entry.h"
#include "engine/log/log_record.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/wire/background_free.h"
#include "engine/storage/wire/messages.h"
#include "engine/storage/wire/storage_client.h"
#include "rdma/rpc/worker.h"

// One coordinator's log rings, one on each node (in RegionLayout::log_ring). The coordinator alone
// writes them, by its own verbs or by asking the node to carry out the same verbs, and alone
// decides what may be overwritten: an entry whose transaction has been installed everywhere.
// engine/log/log_entry.h has the bytes. A payload larger than kInlinePayloadMax is written to
// segments (overflow blocks of that node) before, and the entry lists them.

namespace rdmacc {

// The bytes of one entry, placed on one node: what one_sided writes and an RPC request carries.
struct LogPlacement {
  NodeId node = 0;
  WorkerId ring_of = kNoWorker;
  uint64_t position = 0;
  LogRingHead head;                     // to publish first
  std::span<const std::byte> entry;     // header and stored bytes, padded, registered memory
  uint64_t lock_ctts = 0;               // of the transaction; tag of its segments
  std::vector<GlobalAddress> segments;  // to be freed once applied
};

// Adds the WRITEs of an entry (head first, then the entry) to a batch. Used by the coordinator,
// and by the node for itself when the Log stage is RPC. False: `arena` is used up.
[[nodiscard]] bool add_log_writes(const RegionLayout& layout, const LogPlacement& placement,
                                  VerbArena& arena, DoorbellBatch& batch);
// What place() has prepared is to be logged as prepared, not as committed. Before add_log_writes.
void mark_prepared(const LogPlacement& placement);
// Commits an entry that was logged as prepared.
[[nodiscard]] bool add_log_deciding(const RegionLayout& layout, const LogPlacement& placement,
                                    VerbArena& arena, DoorbellBatch& batch);
// Makes an entry void, whether or not its WRITEs have arrived before. A transaction that began
// to log and aborts must have this acknowledged by every log node before it unlocks anything;
// where it cannot, the outcome is unknown.
[[nodiscard]] bool add_log_voiding(const RegionLayout& layout, const LogPlacement& placement,
                                   VerbArena& arena, DoorbellBatch& batch);

// A placement in an RPC request. Decoding copies the entry into `arena` and refuses what is not
// an entry of a ring of `from` on node `own`.
void encode_placement(const LogPlacement& placement, MessageWriter& out);
Result<LogPlacement> decode_placement(MessageReader& in, WorkerId from, NodeId own,
                                      VerbArena& arena);

// What is logged: so many bytes, which are written where they go, of what outlives this.
class LoggedPayload {
 public:
  explicit LoggedPayload(const LogRecord& record)
      : bytes_(encoded_bytes(record)), of_(&record), write_([](const void* of, std::byte* out) {
          encode_to(*static_cast<const LogRecord*>(of), out);
        }) {}
  size_t bytes() const { return bytes_; }
  void write_to(std::byte* out) const { write_(of_, out); }

 protected:
  using Write = void (*)(const void* of, std::byte* out);
  LoggedPayload(size_t bytes, const void* of, Write write)
      : bytes_(bytes), of_(of), write_(write) {}

 private:
  size_t bytes_;
  const void* of_;
  Write write_;
};

class LogWriter {
 public:
  static constexpr uint64_t kWaitUsMin = 20, kWaitUsMax = 2'000;

  LogWriter(Worker& worker, const Topology& topology, StorageClient& storage,
            BackgroundFree& frees);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Finds room on every node of `nodes` for a payload and prepares the placements; segments are
  // allocated and written here. Waits (yielding), first come first served, while a ring is full:
  // its older entries belong to transactions of this worker that are about to be applied.
  // kNoSpace, kUnavailable or kCancelled leave nothing behind. `cancelled` may be nullptr.
  Status place(const LoggedPayload& payload, uint64_t lock_ctts, std::span<const NodeId> nodes,
               VerbArena& arena, const bool* cancelled, VerbCounters& counters,
               std::vector<LogPlacement>& placements);
  // The transaction is installed everywhere, or was aborted after place() and its entries are
  // void: its room may be used again. Frees segments in the background; clears `placements`.
  void applied(std::vector<LogPlacement>& placements);

  // Waits until what was written is on disk, where nodes keep their log there: when it is not ok
  // that is not known, and asking again is harmless.
  Status flush(std::span<const LogPlacement> placements, VerbCounters& counters);
  // A transaction that was logged as prepared has aborted, and its entries are void: a node that
  // does not hear of it asks, should its memory be lost, what decides the transaction.
  void abort_on_disk(std::span<const LogPlacement> placements, VerbCounters& counters);
  // Have nodes that were logged on their log on disk? All of a cluster have, or none.
  bool on_disk() const { return on_disk_; }

  uint64_t full_waits() const { return full_waits_; }

 private:
  struct Live {  // an entry that still matters
    uint64_t position, end;
    bool applied;
  };
  struct Ring {
    uint64_t tail = 0;
    bool backed = false;     // there is memory behind it
    std::vector<Live> live;  // from `first` on, oldest first
    size_t first = 0;
    // Everything below has been applied.
    uint64_t head() const { return first == live.size() ? tail : live[first].position; }
    void forget_applied();
  };

  // One to each node that has an entry; the request as `write` makes it.
  Status call_nodes(std::span<const LogPlacement> placements, MethodId method,
                    void (*write)(MessageWriter& out, const LogPlacement& placement),
                    VerbCounters& counters);
  Status back_rings(std::span<const NodeId> nodes, VerbCounters& counters);
  static uint64_t place_for(const Ring& ring, uint64_t bytes);
  bool has_room(std::span<const NodeId> nodes, uint64_t entry_bytes) const;
  Status wait_for_room(std::span<const NodeId> nodes, uint64_t entry_bytes, const bool* cancelled);
  Status prepare(const LoggedPayload& payload, std::span<const NodeId> nodes, VerbArena& arena,
                 const bool* cancelled, VerbCounters& counters,
                 std::vector<LogPlacement>& placements);
  Status prepare_inline(const LoggedPayload& payload, VerbArena& arena,
                        std::vector<LogPlacement>& placements);
  Status prepare_segments(const LoggedPayload& payload, VerbArena& arena, const bool* cancelled,
                          VerbCounters& counters, std::vector<LogPlacement>& placements);
  Status allocate_segments(uint64_t payload_bytes, VerbCounters& counters,
                           std::vector<LogPlacement>& placements);
  Status write_segments(std::span<const std::byte> payload, VerbArena& arena, const bool* cancelled,
                        VerbCounters& counters, const std::vector<LogPlacement>& placements);
  void free_segments(const std::vector<LogPlacement>& placements);

  Worker& worker_;
  const Topology topology_;
  const RegionLayout layout_;
  StorageClient& storage_;
  BackgroundFree& frees_;
  const uint64_t salt_;
  std::vector<Ring> rings_;        // by node
  std::deque<const void*> queue_;  // coroutines that wait for room, oldest first
  uint64_t full_waits_ = 0;
  bool on_disk_ = false;
};

}  // namespace rdmacc
