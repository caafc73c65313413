// The Commit stage where verbs are carried out in place, of writes that go into their slots: words
// are stored where they belong, from where they are.
#include <algorithm>

#include "engine/txn/stages/effects.h"
#include "engine/txn/stages/installer.h"
#include "rdma/base/check.h"
#include "rdma/coroutine/in_place.h"

namespace rdmacc {
namespace {

template <bool kKeepsVersions, typename Port>
class InPlaceInstaller {
 public:
  InPlaceInstaller(Port& port, const LogRecord& record, const InstallOptions& options)
      : port_(port), record_(record), options_(options) {}

  Status run() {
    constexpr size_t kPart = 64;  // between two looks at what else there is to do
    size_t done = 0;
    LostNodes lost;
    for (const Write& write : record_.writes) {
      const NodeId node = write.header.node();
      if (lost.has(node)) continue;
      if (++done % kPart == 0) port_.end_round();
      CHECK(write.overflow.null() &&
            (write.kind == WriteKind::kUnlink || write.record.size() <= write.record_size));
      const bool keeps = kKeepsVersions && keeps_version(write);
      slot_ = port_.find(write.header, slot_bytes(write.record_size, keeps ? write.history : 0));
      if (port_.lost(slot_)) {
        lost.add(node);
        continue;
      }
      if (keeps) RDMACC_RETURN_IF_ERROR(look_at_versions(write));
      const EffectWords words = effect_words(record_, write);
      for (const Effect effect : options_.effects) {
        if (kKeepsVersions && is_of_version(effect)) {
          if (keeps) kept_.carry_out(effect, write, version_words_, *this);
        } else {
          RDMACC_RETURN_IF_ERROR(carry_out(effect, write, words, *this));
        }
      }
      if (!port_.failed()) continue;
      lost.add(node);
      port_.forget_failure();
    }
    port_.end_round();
    return lost.any() ? DoorbellBatch::unreachable() : Status();
  }

  // On the node of the slot, which has been found.
  void write_at(GlobalAddress at, const void* from, size_t bytes) {
    const auto place = port_.find(at, bytes);
    CHECK(!port_.lost(place));
    port_.write(place, 0, from, bytes);
  }
  void word(size_t distance, const uint64_t& word) { port_.write(slot_, distance, &word, 8); }
  Status record(const Write& write) {
    port_.write_bytes(slot_, kOffsetOfRecord, write.record);
    return Status();
  }
  Status entries(const Write& write) {
    CHECK(write.kind == WriteKind::kGap);
    for (const EntryWrite& entry : write.entries) {
      const auto at = port_.find(GlobalAddress::make(write.header.node(), entry.offset), 8);
      if (port_.lost(at)) return DoorbellBatch::unreachable();
      port_.write(at, 0, &entry.value, 8);
    }
    return Status();
  }

 private:
  // We hold the lock, so what is read stays as it is.
  Status look_at_versions(const Write& write) {
    kept_ = KeptVersion();
    const size_t newest_bytes = kBeforeRecord + write.record_size + sizeof(uint64_t);
    const size_t bytes = newest_bytes + write.history * kVersionBytes;
    if (bytes > room_bytes_) {
      room_ = options_.arena->allocate(bytes);
      room_bytes_ = bytes;
    }
    if (room_ == nullptr) return out_of_registered_memory();
    VersionBefore before{};
    port_.read_line(slot_, &before.header, WordOrder::kAscending);
    // The reference stands behind the record.
    before.record = room_;
    port_.read(slot_, kOffsetOfRecord, room_ + kBeforeRecord, write.record_size + sizeof(uint64_t));
    if (port_.failed() || before.header.wts == record_.stamp) return Status();
    find_block(write, options_, before);
    if (before.block != 0) {
      before.versions = room_ + newest_bytes;
      const auto block = port_.find(GlobalAddress::make(write.header.node(), before.block),
                                    version_place(write.record_size, write.history));
      CHECK(!port_.lost(block));
      for (uint32_t v = 0; v < write.history; v++) {
        port_.read(block, version_place(write.record_size, v), before.versions + v * kVersionBytes,
                   kVersionBytes);
      }
      if (port_.failed()) return Status();
    }
    kept_ = KeptVersion(write, before, options_, version_words_);
    return Status();
  }

  Port& port_;
  const LogRecord& record_;
  const InstallOptions& options_;
  typename Port::Place slot_{};
  // Of the versions of one write.
  KeptVersion kept_;
  VersionWords version_words_;
  std::byte* room_ = nullptr;
  size_t room_bytes_ = 0;
};

template <typename Port>
Status install_with(Port&& port, const LogRecord& record, const InstallOptions& options) {
  if (is_of_version(options.effects.front())) {
    return InPlaceInstaller<true, std::remove_reference_t<Port>>(port, record, options).run();
  }
  return InPlaceInstaller<false, std::remove_reference_t<Port>>(port, record, options).run();
}

}  // namespace

bool goes_in_place(Worker& worker, const LogRecord& record, const InstallOptions& options) {
  CHECK(!options.effects.empty());
  return worker.scheduler().port() != Endpoint::Port::kPosted && !options.guarded &&
         options.arena != nullptr &&
         std::all_of(record.writes.begin(), record.writes.end(),
                     [](const Write& write) { return write.overflow.null(); });
}

Status install_in_place(Worker& worker, const LogRecord& record, const InstallOptions& options,
                        VerbCounters& counters) {
  Scheduler& scheduler = worker.scheduler();
  if (scheduler.mapped() != nullptr) {
    return install_with(MappedPort(scheduler, counters), record, options);
  }
  std::byte* registered = options.arena->allocate(SteppedPort::kBytes);
  if (registered == nullptr) return out_of_registered_memory();
  return install_with(SteppedPort(scheduler, counters, registered), record, options);
}

}  // namespace rdmacc
