#pragma once
#include "engine/storage/layout/hash_index.h"
#include "engine/storage/layout/tuple.h"
#include "rdma/fabric/verb.h"

namespace rdmacc {

// One header in a transaction's read or write set: a record's or a gap's. There is one Access per
// header address and transaction, however many operations touch it, so that it is locked once and
// unlocked after all of its effects.
struct Access {
  GlobalAddress header;
  uint64_t key_hash = 0;    // gap: the group's bits
  uint64_t read_wts = 0;    // version that was read
  uint64_t locked_wts = 0;  // version that the lock covers
  uint64_t lease = 0;       // SUNDIAL's word as it was read, or as the lock found it; DRTM's lease
  TableId table = kNoTable;
  uint32_t incarnation = 0;   // 0: not known yet (learnt at the pre-read)
  uint32_t depth = 0;         // gap: local depth of the group
  uint32_t reader_count = 0;  // shared locks that this attempt counts in the lock word
  bool gap = false;
  bool read = false;          // its version matters: noted in read_wts
  bool write = false;         // to be locked before the log
  bool locked = false;        // exclusively, by this attempt
  bool early = false;         // but only early so far: others may read it (kEarlyLockBit)
  bool lease_locked = false;  // SUNDIAL: so is the word that holds the lease
  bool tag_only = false;      // a scan knows no more of the key yet than its entry's tag
  bool registered = false;    // MAAT: as a reader, by its ctts in the header's waiter word

  bool held() const { return locked || reader_count > 0; }
  // Does a Release change the header? Asked of each by the dozen: without a branch.
  bool to_give_back() const {
    return (reader_count | static_cast<uint32_t>(locked) | static_cast<uint32_t>(registered)) != 0;
  }
  bool locked_to_commit() const { return locked && !early; }
  void note_unlocked() { locked = early = lease_locked = false; }
  void note_given_back() {
    note_unlocked();
    reader_count = 0;
    registered = false;
  }
};

static_assert(sizeof(Access) == kCacheLineBytes);

// What has to be undone to give a header back.
struct Held {
  GlobalAddress header;
  bool locked = false;
  bool lease_locked = false;
  bool registered = false;
  uint32_t reader_count = 0;
  uint64_t lease = 0;  // the word that the lock replaced, with lease_locked

  explicit Held(const Access& access)
      : header(access.header),
        locked(access.locked),
        lease_locked(access.lease_locked),
        registered(access.registered),
        reader_count(access.reader_count),
        lease(access.lease) {}
  Held() = default;
  // Of what is written, Commit gives the lock back.
  void leave_lock() {
    locked = lease_locked = false;
    reader_count = 0;
  }
};

// Does a header still belong to what the access means?
inline bool same_identity(const Access& access, const Header& seen) {
  return seen.table == access.table && (access.tag_only || seen.key_hash == access.key_hash) &&
         (access.incarnation == 0 || seen.incarnation == access.incarnation) &&
         (!access.gap || seen.length == access.depth);
}

// Of a gap header that was seen there, and says itself which group it is of.
inline Access gap_as_seen(GlobalAddress at, const Header& seen) {
  Access gap;
  gap.header = at;
  gap.gap = true;
  gap.table = seen.table;
  gap.key_hash = seen.key_hash;
  gap.depth = seen.length;
  gap.incarnation = seen.incarnation;
  return gap;
}

// Does the group of a gap header, as far as the access knows it, hold the keys of this hash? Keys
// of one group share an access: what was seen for one of them need not hold for the others.
inline bool claims(const Access& gap, uint64_t hash) {
  return gap.gap && gap.depth <= kDepthMax && gap.key_hash == group_bits_of(hash, gap.depth);
}

}  // namespace rdmacc
