#include "engine/storage/owner/reclaimer.h"

#include <algorithm>

namespace rdmacc {

namespace {
// Other nodes raise epochs meanwhile.
constexpr int kEraTries = 8;
}  // namespace

Reclaimer::Reclaimer(Worker& worker, const Topology& topology, Arena& arena)
    : worker_(worker), topology_(topology), layout_(topology), arena_(arena) {}

void Reclaimer::advance() {
  if (busy_) return;
  busy_ = true;
  std::vector<uint64_t> retired = arena_.take_retired();
  if (!read_lines()) {
    arena_.put_back_retired(std::move(retired));
    busy_ = false;
    return;
  }
  if (!retired.empty()) limbo_.push_back(Retired{epoch(), std::move(retired)});
  if (all_quiet() && !raise_epoch()) {
    busy_ = false;
    return;
  }
  while (!limbo_.empty() && limbo_.front().epoch + 2 <= epoch()) {
    reclaim_some(limbo_.front().offsets);
    if (limbo_.front().offsets.empty()) limbo_.pop_front();
    worker_.scheduler().yield();  // to requests: after a large DELETE there is much
  }
  busy_ = false;
}

void Reclaimer::reclaim_some(std::vector<uint64_t>& offsets) {
  constexpr size_t kAtOnce = 64;
  const size_t left = offsets.size() - std::min(offsets.size(), kAtOnce);
  arena_.reclaim(std::span<const uint64_t>(offsets).subspan(left));
  offsets.resize(left);
}

bool Reclaimer::read_lines() {
  const size_t lines_bytes = topology_.workers_max * sizeof(WorkerLine);
  if (gate_ == nullptr) {
    const Result<std::byte*> memory =
        worker_.endpoint().allocate_registered(sizeof(GateLine) + 64 + lines_bytes);
    if (!memory.ok()) return false;
    gate_ = reinterpret_cast<GateLine*>(memory.value());
    seen_ = reinterpret_cast<uint64_t*>(memory.value() + sizeof(GateLine));
    lines_ = reinterpret_cast<WorkerLine*>(memory.value() + sizeof(GateLine) + 64);
  }
  // Gate first: a worker that announces an epoch after the lines were read has seen this one or
  // later.
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  batch.read(GlobalAddress::make(0, layout_.control), gate_, sizeof(GateLine));
  batch.read(GlobalAddress::make(0, layout_.worker_line(0)), lines_, lines_bytes);
  if (!batch.execute().ok()) return false;
  if (gate_->epoch < kFirstEpoch) return false;  // node 0 has not formatted its region yet
  epoch_word_ = gate_->epoch;
  ++looks_;
  return true;
}

bool Reclaimer::all_quiet() const {
  CHECK(lines_ != nullptr);  // read_lines() came first
  for (WorkerId worker = 0; worker < topology_.workers_max; ++worker) {
    if (lines_[worker].epoch != 0 && lines_[worker].epoch != epoch_word_) return false;
  }
  return true;
}

// Epochs end before they would become eras: what is retired stays so from then on.
bool Reclaimer::raise_epoch() { return epoch() + 1 < kEra && replace_epoch_word(epoch_word_ + 1); }

uint64_t Reclaimer::raise_era() {
  if (busy_) return 0;
  busy_ = true;
  uint64_t began_in = 0;
  for (int i = 0; i < kEraTries && began_in == 0; ++i) {
    if (!read_lines() || eras_left() == 0) break;
    const uint64_t wanted = epoch_word_ + kEra;
    if (replace_epoch_word(wanted) && epoch_word_ == wanted) began_in = epoch();
  }
  busy_ = false;
  return began_in;
}

// False when node 0 is away; the word is then as it was, else as it was found or made.
bool Reclaimer::replace_epoch_word(uint64_t by) {
  const uint64_t at = layout_.control + offsetof(GateLine, epoch);
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  batch.compare_swap(GlobalAddress::make(0, at), epoch_word_, by, seen_);
  if (!batch.execute().ok()) return false;
  epoch_word_ = *seen_ == epoch_word_ ? by : *seen_;
  return true;
}

}  // namespace rdmacc
