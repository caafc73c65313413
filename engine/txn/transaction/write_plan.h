#pragma once
#include <algorithm>
#include <forward_list>
#include <string>

#include "engine/txn/stages/find.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/transaction/logged_write.h"
#include "engine/txn/transaction/stable_list.h"

namespace rdmacc {

// A key that is going to be written, and what was found of it.
struct KeyWrite {
  TableId table = kNoTable;
  uint64_t hash = 0;
  std::string_view key;  // outlives the plan
  bool deleted = false;
  std::string_view row;     // unless deleted
  std::string_view record;  // as the log has it, and outlives the plan; empty: it is made here
  Access* tuple = nullptr;  // of a row, or of the tombstone of one; nullptr: there is none
  uint64_t overflow = 0;    // offset of its overflow block, 0 = none
};

// What the write of one key comes to.
struct PlannedWrite {
  TableId table = kNoTable;
  WriteKind kind = WriteKind::kUpdate;
  uint16_t record_size = 0, history = 0;  // of the table
  uint64_t hash = 0;
  Access* tuple = nullptr;  // of an insert: known once room is allocated
  Access* gap = nullptr;    // of what relinks: the gap header that guards the key
  std::string_view record;  // with the key, of what is deleted, too
  GlobalAddress new_overflow, old_overflow;
  uint32_t entries = 0;  // of the first one of its gap: their place in the plan
  // When what is there before was still named by the row.
  uint32_t node_incarnation = 0;

  std::string_view key() const {
    return record.substr(kKeyLengthBytes, key_bytes_of(record.data()));
  }

  // Does its record go into a block of its own?
  bool overflows() const { return record.size() > record_size && kind != WriteKind::kUnlink; }
  // Sets or clears an index entry, under the lock of the gap header.
  bool relinks() const { return kind == WriteKind::kInsert || kind == WriteKind::kUnlink; }
};

// All that one worker writes for a transaction, on the way from keys to what Commit installs:
// used by a coordinator for a whole transaction, and by a participant of a deterministic one for
// its part. Its user finds the gap headers. Used by one coroutine.
class WritePlan {
 public:
  using Accesses = StableList<Access>;

  // A delete unlinks the tuple, or leaves a tombstone where old versions are read.
  [[gnu::always_inline]] PlannedWrite& add(const ProtocolRules& rules, const KeyWrite& write) {
    CHECK(write.tuple != nullptr || !write.deleted);
    PlannedWrite& planned = writes_.emplace_back();
    planned.table = write.table;
    planned.hash = write.hash;
    if (write.deleted) {
      planned.kind = rules.keeps_versions() ? WriteKind::kTombstone : WriteKind::kUnlink;
    } else if (write.tuple == nullptr) {
      planned.kind = WriteKind::kInsert;
    }
    relinks_ = relinks_ || planned.relinks();
    planned.record = !write.record.empty() ? write.record : make_record(write);
    if (write.tuple == nullptr) return planned;
    planned.tuple = write.tuple;
    write.tuple->write = true;
    if (write.overflow != 0) {
      planned.old_overflow = GlobalAddress::make(write.tuple->header.node(), write.overflow);
    }
    return planned;
  }
  bool empty() const { return writes_.empty(); }
  // Does any of the writes?
  bool relinks() const { return relinks_; }
  void expect(size_t writes) { writes_.reserve(writes); }
  size_t room() const { return std::max(writes_.capacity(), locks_.capacity()); }
  std::span<PlannedWrite> all() { return writes_; }
  // For the next transaction; the memory is kept.
  void clear() {
    writes_.clear();
    relinks_ = false;
    locks_.clear();
    entries_.clear();
    allocated_.clear();
    pooled_.clear();
    kept_blocks_.clear();
    made_records_.clear();
  }

  // Look-ups of gap headers that are not known yet, `at_most` of them, and in `of` the writes that
  // need them. `from`: the write to begin with, and then the first one that was not looked at.
  std::vector<KeyWork> missing_gaps(size_t& from, size_t at_most, std::vector<PlannedWrite*>& of);
  // Forgets gap headers that were only located and, as looks for other keys have shown since, do
  // not hold the key any more: they are missing again.
  void forget_moved_gaps();
  // Slots for inserts, blocks for records that do not fit their slot: all or nothing. `accesses`
  // outlives this, and gets those of inserted tuples.
  Status allocate_room(StageContext& stage, Accesses& accesses);
  // What has to be locked, gap headers with the entries that are wanted in their groups.
  LargeVector<LockWork>& plan_locks();
  LargeVector<LockWork>& locks() { return locks_; }
  // Tuples first, then gap headers: the order in which they are installed. Views of this.
  void list_writes(LogRecord& record);
  // By their keys; views of this.
  void list_logged(std::vector<LoggedWrite>& writes) const;

  // What was allocated is part of the table now.
  void keep_room() {
    allocated_.clear();
    pooled_.clear();
    kept_blocks_.clear();
  }
  // Or nothing uses it, nor any log names it: given back, if there is any.
  Status give_back_room(StageContext& stage);
  // Blocks and slots that the installed writes have replaced, and `evicted` blocks with them.
  // False: there were none.
  bool free_replaced(StageContext& stage, std::span<const GlobalAddress> evicted = {});

 private:
  std::string_view make_record(const KeyWrite& write);
  using SlotRequest = StorageClient::SlotRequest;
  using SlotRequests = boost::container::small_vector<SlotRequest, 16>;
  Status note_tables(StageContext& stage, size_t& wanting);
  Status allocate_some(StageContext& stage, Accesses& accesses, size_t& from);
  Status allocate(StageContext& stage, SlotRequests& requests);
  Status ask_nodes(StageContext& stage, std::span<SlotRequest> requests);
  void take_blocks(StageContext& stage, std::span<SlotRequest> requests);
  void note_allocated(std::span<const SlotRequest> got);
  void take_room(const SlotRequest& got, PlannedWrite& write, Accesses& accesses);

  LargeVector<PlannedWrite> writes_;
  bool relinks_ = false;  // one of them does
  LargeVector<LockWork> locks_;
  LargeVector<EntryWork> entries_;  // of the locks of gap headers, in their order
  LargeVector<StorageClient::FreeRequest> allocated_;  // by the nodes
  // Kept by this worker before.
  SlotPool::Slots pooled_;
  boost::container::small_vector<BlockPool::Taken, 16> kept_blocks_;
  std::forward_list<std::string> made_records_;
};

}  // namespace rdmacc
