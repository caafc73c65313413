#pragma once
#include "engine/txn/stages/effects.h"
#include "engine/txn/stages/install.h"

// How install() works: private to its sources, install.cc, install_versions.cc and
// install_in_place.cc.

namespace rdmacc {

constexpr size_t kFewWrites = 16;

// A head and, behind it, the reference to an overflow block.
constexpr size_t kVersionBytes = sizeof(VersionHead) + 8;
// A new block's beginning: the slot that it belongs to, and the first version's head.
constexpr size_t kBeforeRecord = sizeof(uint64_t) + sizeof(VersionHead);
static_assert(kVersionsSlotPlace + sizeof(uint64_t) == version_place(0, 0));

// Verbs are carried out in place, and the writes go into their slots and keep no version.
bool goes_in_place(Worker& worker, const LogRecord& record, const InstallOptions& options);
Status install_in_place(Worker& worker, const LogRecord& record, const InstallOptions& options,
                        VerbCounters& counters);

// One install() whose verbs are gathered to rounds.
class Installer {
 public:
  Installer(Worker& worker, const LogRecord& record, const InstallOptions& options,
            VerbCounters& counters)
      : record_(record),
        options_(options),
        own_arena_(worker.pool()),
        arena_(options.arena != nullptr && record.writes.size() <= kFewWrites ? *options.arena
                                                                              : own_arena_),
        batch_(worker.scheduler(), counters) {
    for (const Effect effect : options.effects) {
      keeps_versions_ = keeps_versions_ || effect == Effect::kVersionStamp;
    }
  }

  // Writes [begin, end) of the record, in one round, after a read if one is needed.
  Status round(size_t begin, size_t end) {
    CHECK(begin < end && end <= record_.writes.size());
    own_arena_.reset();
    before_.assign(end - begin, Before{});
    if (options_.guarded || keeps_versions_) RDMACC_RETURN_IF_ERROR(look(begin, end));
    for (size_t i = begin; i < end; i++) {
      const Write& write = record_.writes[i];
      const Header& header = before_[i - begin].header;
      if (options_.guarded && !holds(write, header)) {
        if (options_.underway && header.lock == record_.lock_ctts) {
          RDMACC_RETURN_IF_ERROR(unlock_dropped(write, header));
        }
        continue;
      }
      RDMACC_RETURN_IF_ERROR(install(write, before_[i - begin]));
    }
    return batch_.execute();
  }

 private:
  // What a read before the writes tells of one header, in registered memory.
  struct Before {
    Header header;
    std::byte* record;    // the newest, of a slot whose version is to be kept, behind kBeforeRecord
    std::byte* versions;  // heads of the old ones and what follows: kVersionBytes each
    uint64_t block;       // where these are; 0: in none yet
    bool lost;            // there were others, which are gone
    GlobalAddress fresh;  // the block that the row gets
  };
  // In registered memory: what is written, and what of versions.
  struct Words : EffectWords {
    uint64_t version_stamp;
    uint64_t reference;
    uint64_t lost_stamp;
  };
  // One write, for carry_out().
  struct Out {
    Installer& installer;
    const Write& write;
    void word(size_t distance, const uint64_t& from) {
      installer.batch_.write(write.header.plus(distance), &from, 8);
    }
    Status record(const Write& of) { return installer.record(of); }
    Status entries(const Write& of) { return installer.entries(of); }
  };

  // Is the header still the one that the transaction has locked? A record stays in its ring for a
  // while after it was installed, and the page may be another table's by then, or hold a block
  // whose bytes happen to be the lock word's. A slot that was kept for inserts learns its key when
  // the row is installed, and keeps its incarnation until then.
  bool holds(const Write& write, const Header& header) const {
    const bool same = write.kind == WriteKind::kInsert ? header.incarnation == write.incarnation
                                                       : header.key_hash == write.key_hash;
    return header.lock == record_.lock_ctts && header.table == write.table && same;
  }
  bool keeps_version(const Write& write) const {
    return keeps_versions_ && write.history > 0 &&
           (write.kind == WriteKind::kUpdate || write.kind == WriteKind::kTombstone);
  }

  Status look(size_t begin, size_t end);
  Status look_at_versions(size_t begin, size_t end);
  bool has_versions_to_keep(const Write& write, const Before& before) const;
  void evict(GlobalAddress block);
  void keep(GlobalAddress block);
  void attach(const Write& write, Words& words);
  Status install(const Write& write, Before& before);
  Status unlock_dropped(const Write& write, const Header& header);
  Status carry_out_effect(Effect effect, const Write& write, Words& words);
  void prepare_version(const Write& write, const Before& before, Words& words);
  void make_room(const Write& write, const Before& before);
  uint32_t choose_place(const Write& write, const Before& before) const;
  Status record(const Write& write);
  Status entries(const Write& write);
  Status bytes(GlobalAddress to, std::string_view from);

  const LogRecord& record_;
  const InstallOptions& options_;
  VerbCounters allocation_counters_;  // none that a transaction's stage shows
  bool keeps_versions_ = false;
  VerbArena own_arena_;
  VerbArena& arena_;
  DoorbellBatch batch_;
  boost::container::small_vector<Before, kFewWrites> before_;
  // Of the write under way: the old version that makes room, and the bytes that it will have.
  GlobalAddress version_at_;
  std::byte* version_ = nullptr;  // nullptr: none is kept
  GlobalAddress fresh_;           // the block that becomes the row's
  bool lost_ = false;             // the row has lost versions
  bool tells_loss_ = false;       // and is told so
  bool leased_ = false;           // its lease is in place already
};

}  // namespace rdmacc
