#include "engine/log/log_ring.h"

#include <algorithm>
#include <cstring>

#include "engine/storage/layout/overflow.h"

namespace rdmacc {
namespace {

// Of each node, per request and per round of WRITEs: what one transaction may claim at a time.
constexpr uint64_t kSegmentsPerRequest = 16;
constexpr uint64_t kSegmentsPerRound = 4;

GlobalAddress ring_head_address(const RegionLayout& layout, const LogPlacement& placement) {
  return GlobalAddress::make(placement.node, layout.log_ring(placement.ring_of));
}

GlobalAddress entry_address(const RegionLayout& layout, const LogPlacement& placement) {
  return GlobalAddress::make(
      placement.node, log_entry_offset(layout.log_ring(placement.ring_of), placement.position));
}

bool add_state(const RegionLayout& layout, const LogPlacement& placement, uint64_t state,
               VerbArena& arena, DoorbellBatch& batch) {
  auto* word = arena.allocate_array<uint64_t>(1);
  if (word == nullptr) return false;
  *word = state;
  static_assert(offsetof(LogEntryHeader, magic) == 0);
  batch.write(entry_address(layout, placement), word, 8);
  return true;
}

}  // namespace

bool add_log_writes(const RegionLayout& layout, const LogPlacement& placement, VerbArena& arena,
                    DoorbellBatch& batch) {
  CHECK(placement.head.incarnation != 0 && !placement.entry.empty());
  const LogRingHead* head = &placement.head;
  if (!batch.done_when_added()) {  // it has to be registered, and to stay
    auto* copy = arena.allocate_array<LogRingHead>(1);
    if (copy == nullptr) return false;
    *copy = placement.head;
    head = copy;
  }
  batch.write(ring_head_address(layout, placement), head, sizeof(LogRingHead));
  batch.write(entry_address(layout, placement), placement.entry.data(), placement.entry.size());
  return true;
}

bool add_log_voiding(const RegionLayout& layout, const LogPlacement& placement, VerbArena& arena,
                     DoorbellBatch& batch) {
  return add_state(layout, placement, 0, arena, batch);
}

bool add_log_deciding(const RegionLayout& layout, const LogPlacement& placement, VerbArena& arena,
                      DoorbellBatch& batch) {
  return add_state(layout, placement, kLogEntryMagic, arena, batch);
}

// The entry is in memory of this worker, of which the placement keeps a view.
void mark_prepared(const LogPlacement& placement) {
  CHECK(placement.entry.size() >= sizeof(LogEntryHeader));
  auto* bytes = const_cast<std::byte*>(placement.entry.data());
  std::memcpy(bytes, &kLogPreparedMagic, sizeof(kLogPreparedMagic));
}

LogWriter::LogWriter(Worker& worker, const Topology& topology, StorageClient& storage,
                     BackgroundFree& frees)
    : worker_(worker),
      topology_(topology),
      layout_(topology),
      storage_(storage),
      frees_(frees),
      salt_(worker.endpoint().random().next()),
      rings_(topology.nodes) {}

uint64_t LogWriter::place_for(const Ring& ring, uint64_t bytes) {
  const uint64_t place = ring.tail % kLogRingBytes;
  return place + bytes <= kLogRingBytes ? ring.tail : ring.tail - place + kLogRingBytes;
}

[[gnu::always_inline]] inline bool LogWriter::has_room(std::span<const NodeId> nodes,
                                                       uint64_t entry_bytes) const {
  CHECK(entry_bytes > 0 && entry_bytes <= kLogRingBytes);  // or it would wait for ever
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    const Ring& ring = rings_[node];
    return place_for(ring, entry_bytes) + entry_bytes - ring.head() <= kLogRingBytes;
  });
}

// First come first served, so that a large entry gets its turn among small ones.
[[gnu::always_inline]] inline Status LogWriter::wait_for_room(std::span<const NodeId> nodes,
                                                              uint64_t entry_bytes,
                                                              const bool* cancelled) {
  if (queue_.empty() && has_room(nodes, entry_bytes)) return Status::ok_status();
  ++full_waits_;
  const void* self = &entry_bytes;
  queue_.push_back(self);
  uint64_t pause_us = kWaitUsMin;
  Status status;
  while (queue_.front() != self || !has_room(nodes, entry_bytes)) {
    if (cancelled != nullptr && *cancelled) {
      status = Status(Code::kCancelled);
      break;
    }
    worker_.scheduler().sleep_for(pause_us);
    pause_us = std::min(2 * pause_us, kWaitUsMax);
  }
  queue_.erase(std::find(queue_.begin(), queue_.end(), self));
  return status;
}

// Once for each node.
[[gnu::always_inline]] inline Status LogWriter::back_rings(std::span<const NodeId> nodes,
                                                           VerbCounters& counters) {
  for (const NodeId node : nodes) {
    CHECK(node < rings_.size());
    if (rings_[node].backed) continue;
    Result<bool> on_disk = storage_.back_log_ring(node, counters);
    if (!on_disk.ok()) return on_disk.status();
    on_disk_ = on_disk_ || *on_disk;
    rings_[node].backed = true;
  }
  return Status::ok_status();
}

Status LogWriter::place(const LoggedPayload& payload, uint64_t lock_ctts,
                        std::span<const NodeId> nodes, VerbArena& arena, const bool* cancelled,
                        VerbCounters& counters, std::vector<LogPlacement>& placements) {
  CHECK(lock_ctts != 0);
  CHECK(payload.bytes() > 0 && !nodes.empty() && placements.empty());
  if (payload.bytes() > kLogPayloadMax) {
    return Status(Code::kNoSpace, "the transaction's log record is too large");
  }
  RDMACC_RETURN_IF_ERROR(back_rings(nodes, counters));
  frees_.start();
  for (const NodeId node : nodes) {
    LogPlacement& placement = placements.emplace_back();
    placement.node = node;
    placement.ring_of = worker_.id();
    placement.lock_ctts = lock_ctts;
  }
  Status status = prepare(payload, nodes, arena, cancelled, counters, placements);
  if (!status.ok()) {
    free_segments(placements);
    placements.clear();
    return status;
  }
  // Room was found and nothing yields from here on.
  for (LogPlacement& placement : placements) {
    Ring& ring = rings_[placement.node];
    placement.position = place_for(ring, placement.entry.size());
    CHECK(placement.position >= ring.tail && !placement.entry.empty());
    ring.tail = placement.position + placement.entry.size();
    ring.live.push_back(Live{placement.position, ring.tail, false});
    placement.head = LogRingHead{ring.head(), worker_.endpoint().incarnation(), salt_, {}};
    auto* bytes = const_cast<std::byte*>(placement.entry.data());
    std::memcpy(bytes + offsetof(LogEntryHeader, position), &placement.position, 8);
    seal_log_entry({bytes, placement.entry.size()}, placement.head);
  }
  return Status::ok_status();
}

namespace {

// An entry's header, what is stored behind it left to the caller. nullptr: `arena` is used up.
std::byte* begin_entry(const LogPlacement& placement, LogPayload kind, size_t payload_bytes,
                       size_t stored_bytes, VerbArena& arena, size_t& entry_bytes) {
  LogEntryHeader header{};
  header.lock_ctts = placement.lock_ctts;
  header.payload_bytes = static_cast<uint32_t>(payload_bytes);
  header.kind = kind;
  header.stored_bytes = static_cast<uint32_t>(stored_bytes);
  entry_bytes = log_entry_bytes(stored_bytes);
  std::byte* bytes = arena.allocate(entry_bytes);
  if (bytes == nullptr) return nullptr;
  std::memset(bytes + entry_bytes - kCacheLineBytes, 0, kCacheLineBytes);  // what is padding
  std::memcpy(bytes, &header, sizeof(header));
  return bytes;
}

}  // namespace

// Everything of place() that can fail or wait: segments, the entries' bytes, room.
[[gnu::always_inline]] inline Status LogWriter::prepare(const LoggedPayload& payload,
                                                        std::span<const NodeId> nodes,
                                                        VerbArena& arena, const bool* cancelled,
                                                        VerbCounters& counters,
                                                        std::vector<LogPlacement>& placements) {
  RDMACC_RETURN_IF_ERROR(payload.bytes() <= kInlinePayloadMax
                             ? prepare_inline(payload, arena, placements)
                             : prepare_segments(payload, arena, cancelled, counters, placements));
  return wait_for_room(nodes, placements.front().entry.size(), cancelled);
}

[[gnu::always_inline]] inline Status LogWriter::prepare_inline(
    const LoggedPayload& payload, VerbArena& arena, std::vector<LogPlacement>& placements) {
  const LogPlacement& first = placements.front();
  for (LogPlacement& placement : placements) {
    size_t entry_bytes = 0;
    std::byte* bytes = begin_entry(placement, LogPayload::kInline, payload.bytes(), payload.bytes(),
                                   arena, entry_bytes);
    if (bytes == nullptr) return out_of_registered_memory();
    if (&placement == &first) {
      payload.write_to(bytes + sizeof(LogEntryHeader));
    } else {
      std::memcpy(bytes, first.entry.data(), entry_bytes);
    }
    placement.entry = {bytes, entry_bytes};
  }
  return Status();
}

[[gnu::noinline]] Status LogWriter::prepare_segments(const LoggedPayload& payload, VerbArena& arena,
                                                     const bool* cancelled, VerbCounters& counters,
                                                     std::vector<LogPlacement>& placements) {
  std::byte* image = arena.allocate(payload.bytes());
  if (image == nullptr) return out_of_registered_memory();
  payload.write_to(image);
  const std::span<const std::byte> whole(image, payload.bytes());
  const uint64_t checksum = log_payload_checksum(whole);
  RDMACC_RETURN_IF_ERROR(allocate_segments(whole.size(), counters, placements));
  RDMACC_RETURN_IF_ERROR(write_segments(whole, arena, cancelled, counters, placements));
  for (LogPlacement& placement : placements) {
    size_t entry_bytes = 0;
    std::byte* bytes = begin_entry(placement, LogPayload::kSegments, whole.size(),
                                   8 + 8 * log_segments_of(whole.size()), arena, entry_bytes);
    if (bytes == nullptr) return out_of_registered_memory();
    std::byte* stored = bytes + sizeof(LogEntryHeader);
    std::memcpy(stored, &checksum, 8);
    std::memcpy(stored + 8, placement.segments.data(), 8 * placement.segments.size());
    placement.entry = {bytes, entry_bytes};
  }
  return Status();
}

Status LogWriter::allocate_segments(uint64_t payload_bytes, VerbCounters& counters,
                                    std::vector<LogPlacement>& placements) {
  const uint64_t segments = log_segments_of(payload_bytes);
  std::vector<StorageClient::SlotRequest> requests;
  for (uint64_t done = 0; done < segments; done += kSegmentsPerRequest) {
    const uint64_t count = std::min(kSegmentsPerRequest, segments - done);
    requests.clear();
    for (const LogPlacement& placement : placements) {
      StorageClient::SlotRequest request{};
      request.overflow_bytes = kLogSegmentBytes;
      request.node = placement.node;
      request.want_slot = false;
      requests.insert(requests.end(), count, request);
    }
    RDMACC_RETURN_IF_ERROR(storage_.allocate(requests, placements.front().lock_ctts, counters));
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(!requests[i].overflow.null() && requests[i].overflow.node() == requests[i].node);
      placements[i / count].segments.push_back(requests[i].overflow);
    }
  }
  return Status::ok_status();
}

Status LogWriter::write_segments(std::span<const std::byte> payload, VerbArena& arena,
                                 const bool* cancelled, VerbCounters& counters,
                                 const std::vector<LogPlacement>& placements) {
  std::byte* staging = arena.allocate(kSegmentsPerRound * kLogSegmentBytes);
  if (staging == nullptr) return out_of_registered_memory();
  DoorbellBatch batch(worker_.scheduler(), counters);
  const uint64_t segments = log_segments_of(payload.size());
  for (uint64_t first = 0; first < segments; first += kSegmentsPerRound) {
    if (cancelled != nullptr && *cancelled) return Status(Code::kCancelled);
    for (uint64_t s = first; s < std::min(first + kSegmentsPerRound, segments); ++s) {
      const auto part = payload.subspan(
          s * kLogSegmentBytes, std::min(kLogSegmentBytes, payload.size() - s * kLogSegmentBytes));
      std::byte* image = staging + (s - first) * kLogSegmentBytes;
      const uint64_t padded = round_up(part.size(), 8);
      std::memset(image + padded - 8, 0, 8);
      std::memcpy(image, part.data(), part.size());
      for (const LogPlacement& placement : placements) {
        CHECK(placement.segments.size() == segments);
        batch.write(placement.segments[s].plus(sizeof(OverflowHeader)), image, padded);
      }
    }
    RDMACC_RETURN_IF_ERROR(batch.execute());
  }
  return Status::ok_status();
}

Status LogWriter::call_nodes(std::span<const LogPlacement> placements, MethodId method,
                             void (*write)(MessageWriter& out, const LogPlacement& placement),
                             VerbCounters& counters) {
  std::vector<Rpc::Call> calls;
  for (const LogPlacement& placement : placements) {
    Rpc::Call& call = calls.emplace_back();
    call.to = topology_.worker_of(placement.node);
    call.method = method;
    MessageWriter request(call.request);
    write(request, placement);
  }
  worker_.rpc().call_all(calls, counters);
  for (Rpc::Call& call : calls) {
    if (!call.status.ok()) return std::move(call.status);
  }
  return Status();
}

Status LogWriter::flush(std::span<const LogPlacement> placements, VerbCounters& counters) {
  return call_nodes(
      placements, kMethodFlushLog,
      [](MessageWriter& out, const LogPlacement& placement) { out.u64(placement.position); },
      counters);
}

void LogWriter::abort_on_disk(std::span<const LogPlacement> placements, VerbCounters& counters) {
  static_cast<void>(call_nodes(
      placements, kMethodLogDecided,
      [](MessageWriter& out, const LogPlacement& placement) {
        out.u64(placement.lock_ctts);
        out.u8(0);  // not committed
      },
      counters));
}

// The memory stays: what was applied is cut off when it is half of what there is.
void LogWriter::Ring::forget_applied() {
  while (first < live.size() && live[first].applied) ++first;
  if (2 * first < live.size()) return;
  live.erase(live.begin(), live.begin() + static_cast<ptrdiff_t>(first));
  first = 0;
}

void LogWriter::applied(std::vector<LogPlacement>& placements) {
  for (LogPlacement& placement : placements) {
    Ring& ring = rings_[placement.node];
    const auto oldest = ring.live.begin() + static_cast<ptrdiff_t>(ring.first);
    const auto live = std::find_if(oldest, ring.live.end(), [&](const Live& entry) {
      return entry.position == placement.position;
    });
    CHECK(live != ring.live.end() && !live->applied);
    live->applied = true;
    ring.forget_applied();
  }
  free_segments(placements);
  placements.clear();
}

void LogWriter::free_segments(const std::vector<LogPlacement>& placements) {
  for (const LogPlacement& placement : placements) {
    if (placement.segments.empty()) continue;  // nearly always
    // Their owner words name this worker, so that no start of a node frees them while it lives.
    const uint32_t incarnation = frees_.incarnation_of(placement.node);
    for (const GlobalAddress segment : placement.segments) frees_.add(segment, incarnation);
  }
  frees_.start();
}

}  // namespace rdmacc
