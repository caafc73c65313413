// The Commit stage where verbs are carried out in place, of writes that go into their slots: words
// are stored where they belong, from where they are.
#include <algorithm>

#include "engine/txn/stages/effects.h"
#include "engine/txn/stages/installer.h"
#include "rdma/base/check.h"
#include "rdma/coroutine/in_place.h"

namespace rdmacc {
namespace {

template <typename Port>
class InPlaceInstaller {
 public:
  InPlaceInstaller(Port& port, const LogRecord& record, std::span<const Effect> effects)
      : port_(port), record_(record), effects_(effects) {}

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
      slot_ = port_.find(write.header, sizeof(Header) + write.record_size);
      if (port_.lost(slot_)) {
        lost.add(node);
        continue;
      }
      const EffectWords words = effect_words(record_, write);
      for (const Effect effect : effects_) {
        RDMACC_RETURN_IF_ERROR(carry_out(effect, write, words, *this));
      }
      if (!port_.failed()) continue;
      lost.add(node);
      port_.forget_failure();
    }
    port_.end_round();
    return lost.any() ? DoorbellBatch::unreachable() : Status();
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
  Port& port_;
  const LogRecord& record_;
  const std::span<const Effect> effects_;
  typename Port::Place slot_{};
};

template <typename Port>
Status install_with(Port&& port, const LogRecord& record, const InstallOptions& options) {
  return InPlaceInstaller(port, record, options.effects).run();
}

}  // namespace

bool goes_in_place(Worker& worker, const LogRecord& record, const InstallOptions& options) {
  CHECK(!options.effects.empty());
  const bool keeps_versions = options.effects.front() == Effect::kVersionStamp;
  return worker.scheduler().port() != Endpoint::Port::kPosted && !options.guarded &&
         !keeps_versions && options.arena != nullptr &&
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
