#include "engine/txn/remote/stage_message.h"

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

enum AccessBits : uint8_t {
  kGapBit = 1,
  kReadBit = 2,
  kWriteBit = 4,
  kLockedBit = 8,
  kKeyBit = 16,
  kLeaseBit = 32,
  kEarlyBit = 64,
  kRegisteredBit = 128
};

// As messages have them.
struct HeaderFields {
  uint64_t ctts, commit_tts, lease;
  uint32_t count;
  uint8_t work, protocol, lock_mode, stamp_bits;
};

enum StampBits : uint8_t { kReadsToWriteBit = 1, kRegistersBit = 2, kFixedBit = 4 };

constexpr size_t kStatusTextBytesMax = 200;
struct StatusFields {
  uint16_t detail;
  uint8_t code;
  uint8_t text_bytes;  // that follow
};
static_assert(kStatusTextBytesMax <= UINT8_MAX);

struct AccessFields {
  uint64_t header, key_hash, read_wts, locked_wts, lease;
  uint32_t table, incarnation, depth, reader_count;
  uint64_t bits;
};

struct HeldFields {
  uint64_t header, lease;
  uint32_t reader_count, bits;
};

struct KeyRequestFields {
  uint64_t hash;
  uint32_t table, mode, key_bytes, unused;
};

struct KeyResultFields {
  uint64_t overflow;
  uint32_t record_bytes;
  uint32_t copied_bytes;  // of them that follow
  uint16_t reason;
  uint8_t result;
  uint8_t located;  // 1: access follows, 2: gap, too
  uint32_t unused;
};

bool copy_bytes(std::string_view bytes, VerbArena& arena, std::string_view& to) {
  to = {};
  if (bytes.empty()) return true;
  std::byte* copy = arena.allocate(round_up(bytes.size(), 8));
  if (copy == nullptr) return false;
  memcpy(copy, bytes.data(), bytes.size());
  to = std::string_view(reinterpret_cast<const char*>(copy), bytes.size());
  return true;
}

}  // namespace

void write_header(MessageWriter& out, const StageHeader& header) {
  CHECK(header.work < StageWork::kCount);
  const TxnStamps& stamps = header.stamps;
  const int bits = (stamps.reads_to_write ? kReadsToWriteBit : 0) |
                   (stamps.registers ? kRegistersBit : 0) | (stamps.fixed ? kFixedBit : 0);
  out.layout(HeaderFields{stamps.ctts, stamps.commit_tts, stamps.lease, header.count,
                          static_cast<uint8_t>(header.work), static_cast<uint8_t>(header.protocol),
                          static_cast<uint8_t>(header.lock_mode), static_cast<uint8_t>(bits)});
}

void set_count(std::span<std::byte> request, uint32_t count) {
  CHECK(request.size() >= sizeof(HeaderFields));
  memcpy(request.data() + offsetof(HeaderFields, count), &count, sizeof(count));
}

bool read_header(MessageReader& in, StageHeader& header) {
  const auto fields = in.layout<HeaderFields>();
  if (!in.ok() || fields.work >= static_cast<uint8_t>(StageWork::kCount) ||
      fields.protocol >= kProtocolCount ||
      fields.lock_mode > static_cast<uint8_t>(LockMode::kShared) ||
      (fields.stamp_bits & ~(kReadsToWriteBit | kRegistersBit | kFixedBit)) != 0) {
    return false;
  }
  header.stamps = TxnStamps{.ctts = fields.ctts,
                            .commit_tts = fields.commit_tts,
                            .lease = fields.lease,
                            .reads_to_write = (fields.stamp_bits & kReadsToWriteBit) != 0,
                            .registers = (fields.stamp_bits & kRegistersBit) != 0,
                            .fixed = (fields.stamp_bits & kFixedBit) != 0};
  header.count = fields.count;
  header.lock_mode = static_cast<LockMode>(fields.lock_mode);
  header.work = static_cast<StageWork>(fields.work);
  header.protocol = static_cast<Protocol>(fields.protocol);
  return true;
}

void write_status(MessageWriter& out, const Status& status) {
  const std::string_view text = std::string_view(status.message()).substr(0, kStatusTextBytesMax);
  out.layout(StatusFields{status.detail(), static_cast<uint8_t>(status.code()),
                          static_cast<uint8_t>(text.size())});
  out.raw(text.data(), text.size());
}

Status read_status(MessageReader& in) {
  const auto fields = in.layout<StatusFields>();
  const std::string_view text = in.text(fields.text_bytes);
  if (!in.ok() || fields.code > static_cast<uint8_t>(Code::kSystem)) {
    return Status(Code::kCorrupt, "a stage's answer does not parse");
  }
  const auto code = static_cast<Code>(fields.code);
  return text.empty() ? Status::with_detail(code, fields.detail)
                      : Status(code, std::string(text), fields.detail);
}

void write_access(MessageWriter& out, const Access& access) {
  const int bits = (access.gap ? kGapBit : 0) | (access.read ? kReadBit : 0) |
                   (access.write ? kWriteBit : 0) | (access.locked ? kLockedBit : 0) |
                   (access.tag_only ? 0 : kKeyBit) | (access.lease_locked ? kLeaseBit : 0) |
                   (access.early ? kEarlyBit : 0) | (access.registered ? kRegisteredBit : 0);
  out.layout(AccessFields{access.header.bits, access.key_hash, access.read_wts, access.locked_wts,
                          access.lease, access.table, access.incarnation, access.depth,
                          access.reader_count, static_cast<uint64_t>(bits)});
}

bool read_access(MessageReader& in, Access& access) {
  const auto fields = in.layout<AccessFields>();
  access.header.bits = fields.header;
  access.key_hash = fields.key_hash;
  access.read_wts = fields.read_wts;
  access.locked_wts = fields.locked_wts;
  access.lease = fields.lease;
  access.table = fields.table;
  access.incarnation = fields.incarnation;
  access.depth = fields.depth;
  access.reader_count = fields.reader_count;
  access.gap = (fields.bits & kGapBit) != 0;
  access.read = (fields.bits & kReadBit) != 0;
  access.write = (fields.bits & kWriteBit) != 0;
  access.locked = (fields.bits & kLockedBit) != 0;
  access.tag_only = (fields.bits & kKeyBit) == 0;
  access.lease_locked = (fields.bits & kLeaseBit) != 0;
  access.early = (fields.bits & kEarlyBit) != 0;
  access.registered = (fields.bits & kRegisteredBit) != 0;
  return in.ok() && access.reader_count <= kReadersMax;
}

void write_held(MessageWriter& out, const Held& held) {
  const int bits = (held.locked ? kLockedBit : 0) | (held.lease_locked ? kLeaseBit : 0) |
                   (held.registered ? kRegisteredBit : 0);
  out.layout(
      HeldFields{held.header.bits, held.lease, held.reader_count, static_cast<uint32_t>(bits)});
}

bool read_held(MessageReader& in, Held& held) {
  const auto fields = in.layout<HeldFields>();
  held.header.bits = fields.header;
  held.locked = (fields.bits & kLockedBit) != 0;
  held.lease_locked = (fields.bits & kLeaseBit) != 0;
  held.registered = (fields.bits & kRegisteredBit) != 0;
  held.reader_count = fields.reader_count;
  held.lease = fields.lease;
  return in.ok() && held.reader_count <= kReadersMax;
}

void write_end_result(MessageWriter& out, const EndResult& result) {
  out.u32((result.installed ? 1u : 0u) | (result.released ? 2u : 0u));
}

bool read_end_result(MessageReader& in, EndResult& result) {
  const uint32_t bits = in.u32();
  result = EndResult{(bits & 1) != 0, (bits & 2) != 0};
  return in.ok() && bits <= 3;
}

void write_evicted(MessageWriter& out, std::span<const GlobalAddress> evicted) {
  out.u32(static_cast<uint32_t>(evicted.size()));
  for (const GlobalAddress block : evicted) out.u64(block.offset());
}

bool read_evicted(MessageReader& in, NodeId node, std::vector<GlobalAddress>& evicted) {
  const uint32_t count = in.u32();
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    const uint64_t offset = in.u64();
    if (offset >> 48 != 0) return false;
    evicted.push_back(GlobalAddress::make(node, offset));
  }
  return in.ok();
}

void write_key_request(MessageWriter& out, const KeyWork& work) {
  const auto key_bytes = static_cast<uint32_t>(work.key.size());
  out.layout(
      KeyRequestFields{work.hash, work.table, static_cast<uint32_t>(work.mode), key_bytes, 0});
  out.raw(work.key.data(), key_bytes);
}

bool read_key_request(MessageReader& in, KeyWork& work) {
  const auto fields = in.layout<KeyRequestFields>();
  work.table = fields.table;
  work.hash = fields.hash;
  work.key = in.text(fields.key_bytes);  // stays in the request
  if (!in.ok() || fields.mode > static_cast<uint32_t>(KeyWork::Mode::kGapOnly)) return false;
  work.mode = static_cast<KeyWork::Mode>(fields.mode);
  return work.key.size() <= kKeyBytesMax;
}

void write_key_result(MessageWriter& out, const KeyWork& work) {
  const bool found = work.result == KeyWork::Result::kFound;
  const auto record_bytes = static_cast<uint32_t>(found ? work.record.size() : 0);
  const bool access = !work.access.header.null(), gap = !work.gap.header.null();
  const uint32_t copied_bytes = work.overflow == 0 ? record_bytes : 0;
  out.layout(KeyResultFields{work.overflow, record_bytes, copied_bytes,
                             static_cast<uint16_t>(work.reason), static_cast<uint8_t>(work.result),
                             static_cast<uint8_t>((access ? 1 : 0) | (gap ? 2 : 0)), 0});
  if (access) write_access(out, work.access);
  if (gap) write_access(out, work.gap);
  out.raw(work.record.data(), copied_bytes);
}

bool read_key_result(MessageReader& in, VerbArena& arena, KeyWork& work) {
  DCHECK(work.result == KeyWork::Result::kPending);
  const auto fields = in.layout<KeyResultFields>();
  if ((fields.located & 1) != 0 && !read_access(in, work.access)) return false;
  if ((fields.located & 2) != 0 && !read_access(in, work.gap)) return false;
  work.reason = static_cast<AbortReason>(fields.reason);
  work.overflow = fields.overflow;
  const std::string_view record = in.text(fields.copied_bytes);
  if (!in.ok() || !copy_bytes(record, arena, work.record)) return false;
  if (work.overflow != 0) work.record = std::string_view(nullptr, fields.record_bytes);
  if (fields.result > static_cast<uint8_t>(KeyWork::Result::kAborted)) return false;
  work.result = static_cast<KeyWork::Result>(fields.result);
  return true;
}

void write_lock_request(MessageWriter& out, const LockWork& work) {
  DCHECK(work.access != nullptr);
  write_access(out, *work.access);
  const size_t changes = work.entries != nullptr ? work.entries->changes.size() : 0;
  out.u32(static_cast<uint32_t>(changes));
  if (changes == 0) return;
  for (const IndexEntryChange& entry_change : work.entries->changes) {
    out.u64(entry_change.hash);
    out.u64(entry_change.tuple);
    out.u8(entry_change.insert ? 1 : 0);
  }
}

bool read_lock_request(MessageReader& in, Access& access, EntryWork& entries, LockWork& work) {
  if (!read_access(in, access)) return false;
  work.access = &access;
  const uint32_t entry_changes = in.u32();
  if (entry_changes > 0) work.entries = &entries;
  for (uint32_t i = 0; i < entry_changes && in.ok(); i++) {
    IndexEntryChange entry_change{};
    entry_change.hash = in.u64();
    entry_change.tuple = in.u64();
    entry_change.insert = in.u8() != 0;
    entries.changes.push_back(entry_change);
  }
  return in.ok();
}

void write_lock_result(MessageWriter& out, const LockWork& work) {
  DCHECK(work.access != nullptr);
  write_access(out, *work.access);
  out.u64(work.waiter);
  if (work.entries == nullptr) return;
  out.u8(static_cast<uint8_t>(work.entries->room));
  out.u32(static_cast<uint32_t>(work.entries->writes.size()));
  for (const EntryWrite& entry : work.entries->writes) {
    out.u64(entry.offset);
    out.u64(entry.value);
  }
}

bool read_lock_result(MessageReader& in, LockWork& work) {
  DCHECK(work.access != nullptr);
  Access seen;
  if (!read_access(in, seen) || !(seen.header == work.access->header)) return false;
  work.access->locked = seen.locked;
  work.access->early = seen.early;
  work.access->lease_locked = seen.lease_locked;
  work.access->lease = seen.lease;
  work.access->reader_count = seen.reader_count;
  work.access->incarnation = seen.incarnation;
  work.access->locked_wts = seen.locked_wts;
  work.waiter = in.u64();
  if (work.entries == nullptr) return in.ok();
  const uint8_t room = in.u8();
  if (room > static_cast<uint8_t>(EntryWork::Room::kBehind)) return false;
  work.entries->room = static_cast<EntryWork::Room>(room);
  const uint32_t entries = in.u32();
  work.entries->writes.clear();
  for (uint32_t i = 0; i < entries && in.ok(); i++) {
    EntryWrite entry{};
    entry.offset = in.u64();
    entry.value = in.u64();
    work.entries->writes.push_back(entry);
  }
  return in.ok();
}

void write_group_request(MessageWriter& out, const ScanWork& work) {
  out.u32(work.table);
  out.u16(work.node);
  out.u64(work.range.bits);
  out.u32(work.range.depth);
  out.u32(work.row_bytes_max);
}

bool read_group_request(MessageReader& in, ScanWork& work) {
  work.table = in.u32();
  work.node = in.u16();
  work.range.bits = in.u64();
  work.range.depth = in.u32();
  work.row_bytes_max = in.u32();
  return in.ok() && work.range.depth <= kDepthMax;
}

void write_group_result(MessageWriter& out, const ScanWork& work) {
  out.u8(static_cast<uint8_t>(work.result));
  out.u16(static_cast<uint16_t>(work.reason));
  write_access(out, work.gap);
  out.u32(static_cast<uint32_t>(work.tuples.size()));
  for (const ScannedTuple& tuple : work.tuples) {
    write_access(out, tuple.access);
    out.u32(tuple.flags);
    out.u64(tuple.overflow);
    out.u32(static_cast<uint32_t>(tuple.record.size()));
    out.bytes((tuple.flags & kFlagOverflow) != 0 ? std::string_view()
                                                 : wanted_part(work, tuple.record));
  }
}

bool read_group_result(MessageReader& in, VerbArena& arena, ScanWork& work) {
  DCHECK(work.tuples.empty());
  const uint8_t result = in.u8();
  work.reason = static_cast<AbortReason>(in.u16());
  if (!read_access(in, work.gap)) return false;
  const uint32_t tuples = in.u32();
  for (uint32_t i = 0; i < tuples && in.ok(); i++) {
    ScannedTuple tuple;
    if (!read_access(in, tuple.access)) return false;
    tuple.flags = in.u32();
    tuple.overflow = in.u64();
    const uint32_t bytes = in.u32();
    const std::string_view record = in.bytes();
    if (!in.ok() || !copy_bytes(record, arena, tuple.record)) return false;
    if ((tuple.flags & kFlagOverflow) != 0) tuple.record = std::string_view(nullptr, bytes);
    work.tuples.push_back(tuple);
  }
  if (!in.ok() || result > static_cast<uint8_t>(ScanWork::Result::kTooLarge)) return false;
  work.result = static_cast<ScanWork::Result>(result);
  return true;
}

}  // namespace rdmacc
