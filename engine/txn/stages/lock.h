#pragma once
#include <span>

#include "engine/log/log_record.h"
#include "engine/txn/driver/engine_context.h"

// The Lock stage of the write set, and Validate: what both do to headers that were found before.

namespace rdmacc {

// An index entry that a transaction wants to set or clear in a group.
struct IndexEntryChange {
  uint64_t hash;
  uint64_t tuple;  // offset of the tuple's header
  bool insert;     // else: unlink
};

// What becomes of the entries of one group, whose gap header is locked for it.
struct EntryWork {
  boost::container::small_vector<IndexEntryChange, 1> changes;  // nearly always one
  // Out: where they go, decided under the lock, and the room that the group has then.
  EntryWrites writes;
  enum class Room : uint8_t {
    kLeft,
    kFull,    // a chain has no empty entry left
    kGrown,   // a chain had to grow
    kBehind,  // a chain that was long already had to: its owner's splits lag behind
  } room = Room::kLeft;
};

struct LockWork {
  Access* access = nullptr;
  EntryWork* entries = nullptr;  // of a gap header whose group changes; it outlives this
  uint64_t waiter = 0;           // out: the waiter word, as it was under the lock
};

// Locks every header that is not locked yet, by the protocol's rule, then places the entries of
// gap headers (asking the owner for room where a chain is full). A conflict is kAborted; whatever
// was locked is noted in the accesses.
Status lock_accesses(StageContext& context, std::span<LockWork> works);

// Checks the read set by the protocol's rule, after all locks.
Status validate_accesses(StageContext& context, std::span<Access* const> accesses);

// Releases what an attempt holds; a header that is not held does not change. When `certain` is
// false (a node restarted under a Lock or Release request) only words that are still the attempt's
// are changed, and no reader count: one that may or may not include the attempt is left to the
// sweep (engine/log/reader_count_sweep.h).
Status release_accesses(StageContext& context, std::span<const Held> held, bool certain);
// The verbs of it, where what is held is certain, with their words in `arena`; kNoSpace when
// they do not fit there.
Status add_releases(VerbArena& arena, std::span<const Held> held, DoorbellBatch& batch);

}  // namespace rdmacc
