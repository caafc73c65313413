#include "engine/durable/ring_entries.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/layout/tuple.h"

namespace rdmacc {

LogRingHead RingEntries::head_of(WorkerId worker) const {
  LogRingHead head;
  std::memcpy(&head, region_ + layout_.log_ring(worker), sizeof(head));
  return head;
}

std::span<const std::byte> RingEntries::ring_of(WorkerId worker) const {
  return {region_ + layout_.log_ring(worker) + sizeof(LogRingHead), kLogRingBytes};
}

Status RingEntries::read(WorkerId worker, uint64_t position, Entry& entry) const {
  const Status none(Code::kInvalidArgument, "there is no such entry in the log ring");
  if (worker >= layout_.workers_max) return none;
  const LogRingHead head = head_of(worker);
  if (head.incarnation == 0) return none;  // then there may be no memory behind the rest
  const std::optional<FoundEntry> found = log_entry_at(head, ring_of(worker), position);
  if (!found) return none;
  std::vector<std::byte>& payload = entry.payload;
  entry.prepared = found->prepared();
  if (found->header.kind == LogPayload::kInline) {
    payload.assign(found->stored.begin(), found->stored.end());
    return Status();
  }
  const std::vector<GlobalAddress> segments = segments_of(*found, node_, layout_);
  if (segments.empty()) return none;
  payload.resize(found->header.payload_bytes);
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint64_t start = i * kLogSegmentBytes;
    const uint64_t bytes = std::min<uint64_t>(kLogSegmentBytes, payload.size() - start);
    std::memcpy(payload.data() + start, region_ + segments[i].offset() + sizeof(OverflowHeader),
                bytes);
  }
  uint64_t checksum = 0;
  std::memcpy(&checksum, found->stored.data(), sizeof(checksum));
  return log_payload_checksum(payload) == checksum ? Status() : none;
}

std::optional<uint64_t> RingEntries::find(WorkerId worker, uint64_t lock_ctts) const {
  if (worker >= layout_.workers_max) return std::nullopt;
  const LogRingHead head = head_of(worker);
  if (head.incarnation == 0) return std::nullopt;
  for (const FoundEntry& entry : find_log_entries(head, ring_of(worker))) {
    if (entry.header.lock_ctts == lock_ctts && !entry.prepared()) return entry.header.position;
  }
  return std::nullopt;
}

void RingEntries::note_logged(WorkerId worker, uint64_t position) {
  std::vector<uint64_t>& positions = logged_[worker];
  const uint64_t head = head_of(worker).position;
  std::erase_if(positions, [head](uint64_t each) { return each < head; });
  positions.push_back(position);
}

// One that cannot be read any more has been overwritten, so it was installed everywhere.
void RingEntries::for_each_logged(
    const std::function<void(const LogRecord&, bool prepared)>& visit) {
  Entry entry;
  for (auto& [worker, positions] : logged_) {
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    std::erase_if(positions, [&, of = worker](uint64_t position) {
      if (!read(of, position, entry).ok()) return true;
      Result<LogRecord> record = decode_log_record(entry.payload);
      if (!record.ok()) return true;
      visit(*record, entry.prepared);
      return false;
    });
  }
}

void RingEntries::adopt(const std::function<bool(uint64_t lock_ctts)>& logged) {
  for (WorkerId worker = 0; worker < layout_.workers_max; ++worker) {
    const LogRingHead head = head_of(worker);
    if (head.incarnation == 0) continue;
    for (const FoundEntry& entry : find_log_entries(head, ring_of(worker))) {
      if (!logged(entry.header.lock_ctts)) continue;
      logged_[worker].push_back(entry.header.position);
    }
  }
}

bool RingEntries::locked_by(GlobalAddress header, uint64_t lock_ctts) const {
  if (header.node() != node_ || !layout_.holds_header(header.offset())) return false;
  // Memory that others change by verbs.
  auto* word = reinterpret_cast<uint64_t*>(
      const_cast<std::byte*>(region_ + header.offset() + kOffsetOfLock));
  return std::atomic_ref<uint64_t>(*word).load(std::memory_order_acquire) == lock_ctts;
}

}  // namespace rdmacc
