#pragma once
#include "engine/txn/stages/effects.h"
#include "engine/txn/stages/kept_version.h"

// How install() works: private to its sources, install.cc and install_in_place.cc.

namespace rdmacc {

constexpr size_t kFewWrites = 16;

// Verbs are carried out in place, and the writes go into their slots.
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
    before_.assign(end - begin, VersionBefore{});
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
    const bool last = end == record_.writes.size();
    if (last && !options_.also_released.empty()) RDMACC_RETURN_IF_ERROR(release_rest());
    return batch_.execute();
  }

 private:
  // In registered memory: what is written, and what of versions.
  struct Words {
    EffectWords effects;
    VersionWords version;
  };
  // One write, for carry_out().
  struct Out {
    Installer& installer;
    const Write& write;
    void word(size_t distance, const uint64_t& from) {
      installer.batch_.write(write.header.plus(distance), &from, 8);
    }
    void write_at(GlobalAddress at, const void* from, size_t bytes) {
      installer.batch_.write(at, from, bytes);
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
  // Not when an install that was cut short had come as far as the stamp.
  bool has_version_to_keep(const Write& write, const VersionBefore& before) const {
    return keeps_versions_ && keeps_version(write) && before.header.wts != record_.stamp &&
           (!options_.guarded || holds(write, before.header));
  }

  Status release_rest();
  Status look(size_t begin, size_t end);
  Status look_at_versions(size_t begin, size_t end);
  Status install(const Write& write, const VersionBefore& before);
  Status unlock_dropped(const Write& write, const Header& header);
  Status record(const Write& write);
  Status entries(const Write& write);
  Status bytes(GlobalAddress to, std::string_view from);

  const LogRecord& record_;
  const InstallOptions& options_;
  bool keeps_versions_ = false;
  VerbArena own_arena_;
  VerbArena& arena_;
  DoorbellBatch batch_;
  boost::container::small_vector<VersionBefore, kFewWrites> before_;
};

}  // namespace rdmacc
