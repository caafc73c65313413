#include <algorithm>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/stages/installer.h"
#include "engine/txn/stages/lock.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {
constexpr size_t kWritesPerRound = 256;
}  // namespace

// We hold the locks, so all of this stays as it is.
Status Installer::look(size_t begin, size_t end) {
  auto* headers = arena_.allocate_array<Header>(end - begin);
  if (headers == nullptr) return out_of_registered_memory();
  for (size_t i = begin; i < end; i++) {
    const Write& write = record_.writes[i];
    const bool keeps = keeps_versions_ && keeps_version(write);
    headers[i - begin] = Header{};
    if (options_.guarded || keeps) {
      batch_.read(write.header, &headers[i - begin], sizeof(Header));
    }
    if (!keeps) continue;
    VersionBefore& before = before_[i - begin];
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

Status Installer::look_at_versions(size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) {
    VersionBefore& before = before_[i - begin];
    const Write& write = record_.writes[i];
    if (has_version_to_keep(write, before)) find_block(write, options_, before);
  }
  for (size_t i = begin; i < end; i++) {
    const Write& write = record_.writes[i];
    VersionBefore& before = before_[i - begin];
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

// Before the round of the last writes is posted.
Status Installer::release_rest() {
  constexpr size_t kFew = 32;
  CHECK(!options_.guarded);
  VerbArena& arena = options_.also_released.size() <= kFew ? arena_ : own_arena_;
  RDMACC_RETURN_IF_ERROR(add_releases(arena, options_.also_released, batch_));
  *options_.release_begun = true;
  return Status();
}

Status Installer::install(const Write& write, const VersionBefore& before) {
  auto* words = arena_.allocate_array<Words>(1);
  if (words == nullptr) return out_of_registered_memory();
  *words = Words{effect_words(record_, write), VersionWords{}};
  // A lease that was written already may have been renewed since: it is not written again.
  const uint64_t lease = before.header.sundial;
  const bool leased =
      options_.guarded && !sundial_locked(lease) && sundial_wts(lease) >= record_.lease;
  KeptVersion kept;
  if (has_version_to_keep(write, before)) {
    kept = KeptVersion(write, before, options_, words->version);
  }
  Out out{*this, write};
  for (const Effect effect : options_.effects) {
    if (is_of_version(effect)) {
      kept.carry_out(effect, write, words->version, out);
    } else if (effect != Effect::kLease || !leased) {
      RDMACC_RETURN_IF_ERROR(carry_out(effect, write, words->effects, out));
    }
  }
  return Status();
}

// The header went with its table and has another identity now: nothing but the lock is written, and
// the lease where the lock's holder has locked it.
Status Installer::unlock_dropped(const Write& write, const Header& header) {
  auto* words = arena_.allocate_array<EffectWords>(1);
  if (words == nullptr) return out_of_registered_memory();
  words->lease = sundial_unlocked_word(record_.lease, 0);
  words->zero = 0;
  if (sundial_locked(header.sundial) &&
      worker_of_ctts(header.sundial) == worker_of_ctts(record_.lock_ctts)) {
    batch_.write(write.header.plus(kOffsetOfSundial), &words->lease, 8);
  }
  batch_.write(write.header.plus(kOffsetOfLock), &words->zero, 8);
  return Status();
}

Status Installer::record(const Write& write) {
  CHECK(!write.overflow.null() || write.record.size() <= write.record_size);
  if (write.overflow.null()) return bytes(write.header.plus(kOffsetOfRecord), write.record);
  // First the block's owner word: until the record is the row's, the block is its writer's to free,
  // and one that a worker had kept is not that worker's any more.
  auto* words = arena_.allocate_array<uint64_t>(2);
  if (words == nullptr) return out_of_registered_memory();
  words[0] = record_.lock_ctts;
  words[1] = write.overflow.offset();
  batch_.write(write.overflow.plus(offsetof(OverflowHeader, owner_ctts)), &words[0], 8);
  RDMACC_RETURN_IF_ERROR(bytes(write.overflow.plus(sizeof(OverflowHeader)), write.record));
  batch_.write(write.header.plus(kOffsetOfRecord), &words[1], 8);
  return Status();
}

Status Installer::entries(const Write& write) {
  CHECK(!write.entries.empty());
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

Status install(Worker& worker, const LogRecord& record, const InstallOptions& options,
               VerbCounters& counters) {
  CHECK(options.also_released.empty() ||
        (options.release_begun != nullptr && worker.scheduler().port() == Endpoint::Port::kPosted));
  if (goes_in_place(worker, record, options)) {
    return install_in_place(worker, record, options, counters);
  }
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
  if (write.kind == WriteKind::kUnlink) return write.overflow.null();  // nothing of it is installed
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
