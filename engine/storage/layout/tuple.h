#pragma once
#include <cstring>
#include <string_view>

#include "engine/api/plain_data.h"
#include "engine/storage/layout/short_bytes.h"
#include "rdma/fabric/verb.h"

// The 64-byte header that every record and every gap header starts with, and the record behind it.
//
//   0   key hash          8    xxh3 of the key's bytes (gap header: the group's hash prefix)
//   8   table id          4    incarnation   4   (one word; the incarnation changes when the slot
//                                                 is unlinked or the group is split)
//   16  wts               8    stamp of the newest version; only ever rises
//   24  length            4    flags         4   (gap header: the group's depth as the length)
//   32  sundial word      8    lock, wts and rts of SUNDIAL in one word
//   40  lock              8    0, the ctts of the holder (early: with kEarlyLockBit), or how many
//                              share it (<= kReadersMax)
//   48  rts               8    MVCC: largest ctts that read the newest version; DRTM: a lease
//                              (lease_word.h)
//   56  waiter            8    WAITDIE: ctts of the oldest waiter; WOUND_WAIT:
//                              of the oldest that waits for readers; MAAT: of the reader that
//                              is registered
//   64  record …               [key length 2][key][row], or, with kFlagOverflow, the 8-byte
//                              address of an overflow block that holds those bytes
//
// Two orders of looking at it: ascending sees the stamp before the lock, descending sees rts,
// then the lock, then length and flags, then the stamp. So a post-read whose stamp is still the
// old one vouches for everything that a writer changes after the stamp: record, length and flags.
// That is why lock stands between wts and rts, and the length between wts and lock. A write goes:
// wts, then length and record, then lock (stamps BEFORE bytes).

namespace rdmacc {

struct Header {
  uint64_t key_hash;
  uint32_t table;
  uint32_t incarnation;
  uint64_t wts;
  uint32_t length;  // of the record's bytes: key length, key and row
  uint32_t flags;
  uint64_t sundial;
  uint64_t lock;
  uint64_t rts;
  uint64_t waiter;
};
static_assert(sizeof(Header) == 64);
static_assert(offsetof(Header, wts) < offsetof(Header, length) &&
              offsetof(Header, length) < offsetof(Header, lock) &&
              offsetof(Header, lock) < offsetof(Header, rts));

constexpr uint32_t kFlagLive = 1;      // holds a row; an allocated, not yet committed slot has 0
constexpr uint32_t kFlagOverflow = 2;  // the record is in an overflow block
constexpr uint32_t kFlagGap = 4;       // a gap header, not a record
constexpr uint32_t kFlagDeleted = 8;   // tombstone: live, but the key is absent

// Readers that share a lock are counted in the lock word. A ctts is larger: it has microseconds
// above its worker id.
constexpr uint64_t kReadersMax = 0xFFFF;
constexpr bool locked_exclusively(uint64_t lock) { return lock > kReadersMax; }
constexpr bool locked_shared(uint64_t lock) { return lock != 0 && lock <= kReadersMax; }

// A lock that its holder has taken before its commit has this bit beside the ctts, which has it
// clear for four years after the cluster's epoch. It keeps other locks out; what it covers stays as
// it is until the holder, at its Lock stage, has taken the bit away: so it is as good as free for
// what only reads. Of protocols that lock what they read no lock is early.
constexpr uint64_t kEarlyLockBit = 1ull << 63;
constexpr uint64_t early_lock(uint64_t ctts) { return ctts | kEarlyLockBit; }
constexpr bool locked_early(uint64_t lock) { return (lock & kEarlyLockBit) != 0; }
// The ctts in a lock word that is locked exclusively.
constexpr uint64_t ctts_of_lock(uint64_t lock) { return lock & ~kEarlyLockBit; }
// The worker that holds it, which the ctts has in its low bits.
constexpr uint64_t worker_of_lock(uint64_t lock) { return lock & 0xFFFF; }
static_assert(early_lock(1) > kReadersMax && ctts_of_lock(early_lock(1)) == 1);

// The lock of a node's thread that takes a deleted row out of its group: older than every
// transaction's. It is held for a moment, by a thread that does not wait and changes nothing that
// a transaction may have read: to wait for it is better than to lose against it.
constexpr uint64_t cleaning_lock(uint16_t worker) { return (uint64_t{1} << 16) | worker; }
constexpr bool is_cleaning_lock(uint64_t lock) { return lock >> 16 == 1; }

constexpr uint64_t kOffsetOfIdentity = offsetof(Header, table);  // table id and incarnation
constexpr uint64_t kOffsetOfLength = offsetof(Header, length);   // length and flags
constexpr uint64_t kOffsetOfWts = offsetof(Header, wts);
constexpr uint64_t kOffsetOfLock = offsetof(Header, lock);
constexpr uint64_t kOffsetOfRts = offsetof(Header, rts);
constexpr uint64_t kOffsetOfSundial = offsetof(Header, sundial);
constexpr uint64_t kOffsetOfWaiter = offsetof(Header, waiter);
constexpr uint64_t kOffsetOfRecord = sizeof(Header);

// The two-field words as they travel in an 8-byte verb (little endian).
constexpr uint64_t pack_words(uint32_t low, uint32_t high) {
  return (static_cast<uint64_t>(high) << 32) | low;
}

constexpr uint32_t kRowBytesMax = 1024 * 1024;  // row bytes (key excluded)
constexpr uint32_t kKeyBytesMax = 2 * 1024;
constexpr uint32_t kRecordSizeMin = 16;  // room for an overflow address
constexpr uint32_t kHistoryMax = 15;

constexpr uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// A record proper: the key's length, the key and the row.
static_assert(kKeyBytesMax <= UINT16_MAX && kKeyLengthBytes == sizeof(uint16_t));
constexpr uint64_t record_bytes(size_t key, size_t row) { return kKeyLengthBytes + key + row; }

inline size_t key_bytes_of(const void* record) {
  uint16_t bytes = 0;
  memcpy(&bytes, record, sizeof(bytes));
  return bytes;
}

// Returns the row's place. `at` has room for record_bytes().
inline char* put_record(char* at, std::string_view key, std::string_view row) {
  const auto bytes = static_cast<uint16_t>(key.size());
  memcpy(at, &bytes, sizeof(bytes));
  copy_bytes(at + kKeyLengthBytes, key.data(), key.size());
  char* const row_at = at + kKeyLengthBytes + key.size();
  if (!row.empty()) memcpy(row_at, row.data(), row.size());
  return row_at;
}

// A multi-version protocol keeps the old versions of a row in a block of its own, which is given to
// the row when it is first written over. An overflow block (overflow.h) holds them:
//
//   16  slot       8    offset of the row's slot; 0: the block is no row's yet
//   24  versions        `history` times a head and a record
//
// The slot names the block behind its record, where the reference's place is. The block's content
// is there before the reference, and the reference before a newer stamp.
constexpr uint64_t kNoOlderVersion = 0;     // the row has had no version but its newest
constexpr uint64_t kOlderVersionsLost = 1;  // it has, and they are gone

// An old version: this head, then its record.
struct VersionHead {
  uint64_t stamp;
  uint32_t length;
  uint32_t flags;
};
static_assert(sizeof(VersionHead) == 16);
constexpr uint64_t kNoVersionStamp = 0;        // there never was one
constexpr uint64_t kLostVersionStamp = ~0ull;  // nor one here, but there may have been others

// What a slot of a table occupies: header, newest record and, if old versions are kept, where they
// are; a multiple of 64 so that headers are line-aligned.
constexpr uint64_t slot_bytes(uint32_t record_size, uint32_t history) {
  const uint64_t reference = history > 0 ? sizeof(uint64_t) : 0;
  return round_up(sizeof(Header) + round_up(record_size, 8) + reference, 64);
}
static_assert(slot_bytes(record_size_of_slot(57, 3), 3) == slot_bytes(57, 3) &&
              slot_bytes(record_size_of_slot(57, 3) + 1, 3) > slot_bytes(57, 3));
// From the slot's beginning.
constexpr uint64_t versions_reference_place(uint32_t record_size) {
  return kOffsetOfRecord + record_size;
}

// Of a block of old versions, from its beginning.
constexpr uint64_t kVersionsSlotPlace = 16;
constexpr uint64_t kVersionsPlace = kVersionsSlotPlace + sizeof(uint64_t);
constexpr uint64_t version_place(uint32_t record_size, uint32_t i) {
  return kVersionsPlace + i * (sizeof(VersionHead) + record_size);
}
// Behind the block's header.
constexpr uint64_t versions_bytes(uint32_t record_size, uint32_t history) {
  return version_place(record_size, history) - kVersionsSlotPlace;
}
constexpr uint64_t kVersionsBytesMax = versions_bytes(kRecordInlineMax, kHistoryMax);

// Can such a block be there? References are asked before anything is read where they lead.
constexpr bool may_be_versions(uint64_t block, uint32_t record_size, uint32_t history,
                               uint64_t region_bytes) {
  const uint64_t end = version_place(record_size, history);
  return block != 0 && block % 64 == 0 && end <= region_bytes && block <= region_bytes - end;
}

}  // namespace rdmacc
