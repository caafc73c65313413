#include "engine/txn/install.h"

#include <algorithm>

#include "engine/storage/overflow.h"
#include "engine/storage/sundial_word.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr size_t kWritesPerRound = 256;
constexpr size_t kFewWrites = 16;

// What a read before the writes tells of one header, in registered memory.
struct Before {
  Header header;
  std::byte* record;    // the newest, of a slot whose version is to be kept, behind kBeforeRecord
  std::byte* versions;  // heads of the old ones and what follows: kVersionBytes each
  uint64_t block;       // where these are; 0: in none yet
  bool lost;            // there were others, which are gone
  GlobalAddress fresh;  // the block that the row gets
};
// A head and, behind it, the reference to an overflow block.
constexpr size_t kVersionBytes = sizeof(VersionHead) + 8;
// A new block's beginning: the slot that it belongs to, and the first version's head.
constexpr size_t kBeforeRecord = sizeof(uint64_t) + sizeof(VersionHead);
static_assert(kVersionsSlotPlace + sizeof(uint64_t) == version_place(0, 0));

// The words that the effects of one write come from, in registered memory.
struct Words {
  uint64_t stamp;
  uint64_t length_flags;
  uint64_t identity;
  uint64_t lease;
  uint64_t zero;
  uint64_t version_stamp;
  uint64_t reference;
  uint64_t lost_stamp;
};

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
      if (options_.guarded && before_[i - begin].header.lock != record_.lock_ctts) continue;
      RDMACC_RETURN_IF_ERROR(install(write, before_[i - begin]));
    }
    return batch_.execute();
  }

 private:
  bool keeps_version(const Write& write) const {
    return keeps_versions_ && write.history > 0 &&
           (write.kind == WriteKind::kUpdate || write.kind == WriteKind::kTombstone);
  }

  Status look(size_t begin, size_t end);
  Status look_at_versions(size_t begin, size_t end);
  bool has_versions_to_keep(const Write& write, const Before& before) const;
  void attach(const Write& write, Words& words);
  Status install(const Write& write, Before& before);
  Status carry_out(Effect effect, const Write& write, Words& words);
  void prepare_version(const Write& write, const Before& before, Words& words);
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

// We hold the locks, so all of this stays as it is.
Status Installer::look(size_t begin, size_t end) {
  auto* headers = arena_.allocate_array<Header>(end - begin);
  if (headers == nullptr) return out_of_registered_memory();
  for (size_t i = begin; i < end; i++) {
    const Write& write = record_.writes[i];
    batch_.read(write.header, &headers[i - begin], sizeof(Header));
    if (!keeps_version(write)) continue;
    Before& before = before_[i - begin];
    // What the newest record becomes as a version stands in front of it, and behind it where the
    // older ones are.
    before.record = arena_.allocate(kBeforeRecord + write.record_size + sizeof(uint64_t));
    if (before.record == nullptr) return out_of_registered_memory();
    batch_.read(write.header.plus(kOffsetOfRecord), before.record + kBeforeRecord,
                write.record_size + sizeof(uint64_t));
  }
  RDMACC_RETURN_IF_ERROR(batch_.execute());
  for (size_t i = begin; i < end; i++) before_[i - begin].header = headers[i - begin];
  return keeps_versions_ ? look_at_versions(begin, end) : Status();
}

// Not when an install that was cut short had come as far as the stamp.
bool Installer::has_versions_to_keep(const Write& write, const Before& before) const {
  return keeps_version(write) && before.header.wts != record_.stamp &&
         (!options_.guarded || before.header.lock == record_.lock_ctts);
}

// Where a row has no block for old versions yet, it gets one.
Status Installer::look_at_versions(size_t begin, size_t end) {
  CHECK(options_.region_bytes > 0);
  for (size_t i = begin; i < end; i++) {
    const Write& write = record_.writes[i];
    Before& before = before_[i - begin];
    if (!has_versions_to_keep(write, before)) continue;
    uint64_t reference = 0;
    memcpy(&reference, before.record + kBeforeRecord + write.record_size, sizeof(reference));
    if (may_be_versions(reference, write.record_size, write.history, options_.region_bytes)) {
      before.block = reference;
      continue;
    }
    before.lost = reference != kNoOlderVersion;
    if (options_.versions == nullptr) continue;
    before.fresh = options_.versions->take(write.header.node(), write.record_size, write.history,
                                           allocation_counters_);
  }
  for (size_t i = begin; i < end; i++) {
    const Write& write = record_.writes[i];
    Before& before = before_[i - begin];
    if (before.block == 0) continue;
    before.versions = arena_.allocate(write.history * kVersionBytes);
    if (before.versions == nullptr) return out_of_registered_memory();
    const GlobalAddress block = GlobalAddress::make(write.header.node(), before.block);
    for (uint32_t v = 0; v < write.history; v++) {
      batch_.read(block.plus(version_place(write.record_size, v)),
                  before.versions + v * kVersionBytes, kVersionBytes);
    }
  }
  return batch_.execute();
}

Status Installer::install(const Write& write, Before& before) {
  auto* words = arena_.allocate_array<Words>(1);
  if (words == nullptr) return out_of_registered_memory();
  const bool gone = write.kind == WriteKind::kUnlink;
  const uint32_t flags = (gone ? 0 : kFlagLive) | (write.overflow.null() ? 0 : kFlagOverflow) |
                         (write.kind == WriteKind::kTombstone ? kFlagDeleted : 0);
  *words = Words{record_.stamp,
                 pack_words(static_cast<uint32_t>(write.record.size()), flags),
                 pack_words(write.table, write.incarnation + 1),
                 sundial_unlocked_word(record_.lease, 0),
                 0,
                 0,
                 0,
                 kLostVersionStamp};
  // A lease that was written already may have been renewed since: it is not written again.
  const uint64_t lease = before.header.sundial;
  leased_ = options_.guarded && !sundial_locked(lease) && sundial_wts(lease) >= record_.lease;
  version_ = nullptr;
  fresh_ = GlobalAddress{};
  tells_loss_ = false;
  if (has_versions_to_keep(write, before)) prepare_version(write, before, *words);
  for (const Effect effect : options_.effects) {
    RDMACC_RETURN_IF_ERROR(carry_out(effect, write, *words));
  }
  return Status();
}

Status Installer::carry_out(Effect effect, const Write& write, Words& words) {
  const GlobalAddress at = write.header;
  const bool gap = write.kind == WriteKind::kGap;
  switch (effect) {
    case Effect::kVersionStamp:
      if (version_ != nullptr && fresh_.null()) {
        batch_.write(version_at_, &words.version_stamp, 8);
      }
      break;
    case Effect::kVersionRecord:
      if (version_ != nullptr && fresh_.null()) {
        batch_.write(version_at_.plus(8), version_ + 8,
                     sizeof(VersionHead) - 8 + write.record_size);
      }
      attach(write, words);
      break;
    case Effect::kStamp:
      batch_.write(at.plus(kOffsetOfWts), &words.stamp, 8);
      break;
    case Effect::kLength:
      if (!gap) batch_.write(at.plus(kOffsetOfLength), &words.length_flags, 8);
      break;
    case Effect::kIdentity:
      if (write.kind == WriteKind::kUnlink) {
        batch_.write(at.plus(kOffsetOfIdentity), &words.identity, 8);
      }
      break;
    case Effect::kRecord:
      return write.record.empty() ? Status() : record(write);
    case Effect::kEntries:
      return entries(write);
    case Effect::kLease:
      if (!leased_) batch_.write(at.plus(kOffsetOfSundial), &words.lease, 8);
      break;
    case Effect::kUnlock:
      batch_.write(at.plus(kOffsetOfLock), &words.zero, 8);
      break;
  }
  return Status();
}

// An empty place, or that of the oldest version. A place that has the stamp already is where an
// install that was cut short had put it.
uint32_t Installer::choose_place(const Write& write, const Before& before) const {
  const auto rank = [&](uint32_t v) {
    uint64_t at = 0;
    memcpy(&at, before.versions + v * kVersionBytes, sizeof(at));
    return at == before.header.wts ? 0 : at == kNoVersionStamp || at == kLostVersionStamp ? 1 : at;
  };
  uint32_t chosen = 0;
  for (uint32_t v = 1; v < write.history; v++) {
    if (rank(v) < rank(chosen)) chosen = v;
  }
  return chosen;
}

// The newest record becomes an old version.
void Installer::prepare_version(const Write& write, const Before& before, Words& words) {
  CHECK(before.record != nullptr);
  const uint64_t stamp = before.header.wts;
  uint32_t chosen = 0;
  if (before.block != 0) {
    chosen = choose_place(write, before);
    VersionHead old;
    memcpy(&old, before.versions + chosen * kVersionBytes, sizeof(old));
    const bool in_use =
        old.stamp != kNoVersionStamp && old.stamp != kLostVersionStamp && old.stamp != stamp;
    if (in_use && (old.flags & kFlagOverflow) != 0 && options_.evicted != nullptr) {
      uint64_t block = 0;
      memcpy(&block, before.versions + chosen * kVersionBytes + sizeof(old), sizeof(block));
      options_.evicted->push_back(GlobalAddress::make(write.header.node(), block));
    }
    version_at_ = GlobalAddress::make(write.header.node(),
                                      before.block + version_place(write.record_size, chosen));
  } else if (before.fresh.null()) {
    words.reference = kOlderVersionsLost;
    tells_loss_ = true;
    return;
  } else {
    fresh_ = before.fresh;
    lost_ = before.lost;
    words.reference = fresh_.offset();
    version_at_ = fresh_.plus(version_place(write.record_size, 0));
  }
  version_ = before.record + sizeof(uint64_t);
  words.version_stamp = stamp;
  const VersionHead head{stamp, before.header.length, before.header.flags};
  memcpy(version_, &head, sizeof(head));
}

// A row's first block is whole before the row names it, and says whose it is: the owner looks
// there.
void Installer::attach(const Write& write, Words& words) {
  const GlobalAddress reference = write.header.plus(versions_reference_place(write.record_size));
  if (tells_loss_) batch_.write(reference, &words.reference, 8);
  if (fresh_.null()) return;
  std::byte* const block = version_ - sizeof(uint64_t);
  const uint64_t slot = write.header.offset();
  memcpy(block, &slot, sizeof(slot));
  batch_.write(fresh_.plus(kVersionsSlotPlace), block, kBeforeRecord + write.record_size);
  for (uint32_t v = 1; lost_ && v < write.history; v++) {
    batch_.write(fresh_.plus(version_place(write.record_size, v)), &words.lost_stamp, 8);
  }
  batch_.write(reference, &words.reference, 8);
}

Status Installer::record(const Write& write) {
  CHECK(!write.overflow.null() || write.record.size() <= write.record_size);
  if (write.overflow.null()) return bytes(write.header.plus(kOffsetOfRecord), write.record);
  RDMACC_RETURN_IF_ERROR(bytes(write.overflow.plus(sizeof(OverflowHeader)), write.record));
  auto* reference = arena_.allocate_array<uint64_t>(1);
  if (reference == nullptr) return out_of_registered_memory();
  *reference = write.overflow.offset();
  batch_.write(write.header.plus(kOffsetOfRecord), reference, 8);
  return Status();
}

Status Installer::entries(const Write& write) {
  if (write.entries.empty()) return Status();
  auto* values = arena_.allocate_array<uint64_t>(write.entries.size());
  if (values == nullptr) return out_of_registered_memory();
  for (size_t i = 0; i < write.entries.size(); i++) {
    values[i] = write.entries[i].value;
    batch_.write(GlobalAddress::make(write.header.node(), write.entries[i].offset), &values[i], 8);
  }
  return Status();
}

Status Installer::bytes(GlobalAddress to, std::string_view from) {
  CHECK(!from.empty());
  const uint64_t padded = round_up(from.size(), 8);
  std::byte* copy = arena_.allocate(padded);
  if (copy == nullptr) return out_of_registered_memory();
  memset(copy + padded - 8, 0, 8);
  memcpy(copy, from.data(), from.size());
  batch_.write(to, copy, padded);
  return Status();
}

}  // namespace

Status install(Worker& worker, const LogRecord& record, const InstallOptions& options,
               VerbCounters& counters) {
  Installer installer(worker, record, options, counters);
  // A small transaction takes one round: verbs of one node's chain keep their order, and a gap
  // header is on the node of its records. In a large one gap headers follow all records in rounds
  // of their own: an entry is visible only when the record behind it is whole.
  const size_t count = record.writes.size();
  const auto first_gap =
      std::find_if(record.writes.begin(), record.writes.end(),
                   [](const Write& write) { return write.kind == WriteKind::kGap; });
  const auto tuples = static_cast<size_t>(first_gap - record.writes.begin());
  for (size_t begin = 0; begin < count;) {
    size_t end = std::min(begin + kWritesPerRound, count);
    if (count > kWritesPerRound && begin < tuples) end = std::min(end, tuples);
    RDMACC_RETURN_IF_ERROR(installer.round(begin, end));
    begin = end;
  }
  return Status();
}

bool may_install(const Write& write, const RegionLayout& layout) {
  const auto within = [&](uint64_t offset, uint64_t bytes) {
    return offset % 8 == 0 && offset >= layout.pages && bytes <= layout.region_bytes &&
           offset <= layout.region_bytes - bytes;
  };
  const uint64_t slot = write.header.offset();
  if (write.kind == WriteKind::kGap) {
    if (slot % 64 != 0 || !within(slot, sizeof(Header))) return false;
    return std::all_of(write.entries.begin(), write.entries.end(),
                       [&](const EntryWrite& entry) { return within(entry.offset, 8); });
  }
  if (write.record_size < kRecordSizeMin || write.record_size % 8 != 0 || slot % 64 != 0 ||
      !within(slot, slot_bytes(write.record_size, write.history))) {
    return false;
  }
  const uint64_t bytes = round_up(write.record.size(), 8);
  if (write.overflow.null()) return bytes <= write.record_size;
  return write.overflow.node() == write.header.node() &&
         within(write.overflow.offset(), sizeof(OverflowHeader) + bytes);
}

InstallCommitted make_installer(Worker& worker, const Topology& topology, RulesOf rules_of) {
  CHECK(rules_of != nullptr);
  return [&worker, topology, layout = RegionLayout(topology), rules_of](const LogRecord& record,
                                                                        VerbCounters& counters) {
    const ProtocolRules* rules =
        record.protocol < kProtocolCount
            ? rules_of(static_cast<Protocol>(record.protocol), LockMode::kExclusive)
            : nullptr;
    const bool sound =
        std::all_of(record.writes.begin(), record.writes.end(), [&](const Write& write) {
          return write.header.node() < topology.nodes && may_install(write, layout);
        });
    if (rules == nullptr || !sound) return Status(Code::kCorrupt, "log record: impossible write");
    InstallOptions options;
    options.effects = rules->effects;
    options.guarded = true;
    options.region_bytes = topology.region_bytes;
    return install(worker, record, options, counters);
  };
}

}  // namespace rdmacc
