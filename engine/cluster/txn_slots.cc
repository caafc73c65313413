#include "engine/cluster/txn_slots.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// The word `bound`: a time, and whether it is fixed.
constexpr uint64_t kFixedBit = 1ull << 63;
constexpr uint64_t kUnbounded = kFixedBit - 1;
constexpr bool is_fixed(uint64_t word) { return (word & kFixedBit) != 0; }
constexpr uint64_t time_of(uint64_t word) { return word & ~kFixedBit; }

// Every CAS that is lost means that another has lowered the bound, of which there are not that
// many.
constexpr int kRoundsMax = 1000;

constexpr uint64_t kOffsetOfBound = offsetof(TxnSlot, bound);
constexpr uint64_t kOffsetOfLatest = offsetof(TxnSlot, latest);

}  // namespace

// In registered memory: a slot as it was seen, and what is written.
struct TxnSlots::Image {
  TxnSlot seen;
  uint64_t cas_seen;
  uint64_t ctts, bound, latest;
};

// A few times at most: each moves the clock on.
uint64_t TxnSlots::draw(TimestampClock& clock) {
  constexpr int kDrawsMax = 2;
  uint64_t ctts = clock.next();
  for (int draw = 1; draw < kDrawsMax && owners_[index(ctts)] != 0; ++draw) ctts = clock.next();
  uint64_t& owner = owners_[index(ctts)];
  if (owner == 0) owner = ctts;
  return ctts;
}

void TxnSlots::give_back(uint64_t ctts) {
  if (has(ctts)) owners_[index(ctts)] = 0;
}

Status TxnSlots::open(uint64_t ctts, VerbArena& arena, VerbCounters& counters) {
  CHECK(has(ctts));
  auto* image = arena.allocate_array<Image>(1);
  if (image == nullptr) return out_of_registered_memory();
  image->ctts = ctts;
  image->bound = kUnbounded;
  DoorbellBatch writes = batch(counters);
  writes.write(at(ctts), &image->ctts, 8);
  writes.write(at(ctts).plus(kOffsetOfBound), &image->bound, 8);
  return writes.execute();
}

// What others with this worker's id have left, and this one before it.
Status TxnSlots::learn_latest(VerbArena& arena, VerbCounters& counters) {
  if (latest_known_) return Status();
  auto* slots = arena.allocate_array<TxnSlot>(kTxnSlotsPerWorker);
  if (slots == nullptr) return out_of_registered_memory();
  DoorbellBatch reads = batch(counters);
  const GlobalAddress first = GlobalAddress::make(0, layout_.txn_slots(worker_.id()));
  reads.read(first, slots, kTxnSlotsPerWorker * sizeof(TxnSlot));
  RDMACC_RETURN_IF_ERROR(reads.execute());
  for (size_t i = 0; i < kTxnSlotsPerWorker; ++i) {
    latest_[i] = std::max(latest_[i], slots[i].latest);
  }
  latest_known_ = true;
  return Status();
}

Status TxnSlots::fix(uint64_t ctts, uint64_t time, VerbArena& arena, VerbCounters& counters,
                     uint64_t& latest) {
  CHECK(has(ctts) && time < kUnbounded);
  RDMACC_RETURN_IF_ERROR(learn_latest(arena, counters));
  auto* image = arena.allocate_array<Image>(1);
  if (image == nullptr) return out_of_registered_memory();
  uint64_t& latest_of_slot = latest_[index(ctts)];
  latest_of_slot = std::max(latest_of_slot, time);
  uint64_t expected = kUnbounded;
  for (int round = 0; round < kRoundsMax; ++round) {
    image->latest = latest_of_slot;
    DoorbellBatch chain = batch(counters);
    chain.write(at(ctts).plus(kOffsetOfLatest), &image->latest, 8);
    chain.compare_swap(at(ctts).plus(kOffsetOfBound), expected, time | kFixedBit, &image->cas_seen);
    chain.read(at(ctts), &image->seen, sizeof(TxnSlot));
    RDMACC_RETURN_IF_ERROR(chain.execute());
    const bool won = image->cas_seen == expected;
    // As after node 0 has lost its memory: only the transaction itself fixes its time, and once.
    const bool lost = image->seen.ctts != ctts || (!won && is_fixed(image->cas_seen));
    if (lost) return DoorbellBatch::unreachable();
    latest = won ? time : image->cas_seen;
    if (won) return Status();
    expected = image->cas_seen;
    if (latest < time) return Status();
  }
  latest = 0;
  return Status();
}

Status TxnSlots::bound(std::span<const uint64_t> others, uint64_t time, VerbArena& arena,
                       VerbCounters& counters, Bounded& result) {
  CHECK(time > 0 && time <= kUnbounded);
  auto* images = arena.allocate_array<Image>(others.size());
  if (images == nullptr) return out_of_registered_memory();
  struct Open {
    uint64_t ctts, expected;
    Image* image;
  };
  boost::container::small_vector<Open, 8> open;
  for (const uint64_t ctts : others) {
    // What a dead node's memory has left in a header need not be a transaction.
    if (worker_of_ctts(ctts) >= layout_.workers_max) continue;
    open.push_back({ctts, kUnbounded, images++});
  }
  for (int round = 0; round < kRoundsMax && !open.empty(); ++round) {
    DoorbellBatch chains = batch(counters);
    for (const Open& each : open) {
      chains.compare_swap(at(each.ctts).plus(kOffsetOfBound), each.expected, time - 1,
                          &each.image->cas_seen);
      chains.read(at(each.ctts), &each.image->seen, sizeof(TxnSlot));
    }
    RDMACC_RETURN_IF_ERROR(chains.execute());
    const auto settled = [&](Open& each) {
      const uint64_t seen = each.image->cas_seen;
      if (each.image->seen.ctts != each.ctts) {  // S3
        result.fixed = std::max(result.fixed, each.image->seen.latest);
      } else if (is_fixed(seen)) {
        result.fixed = std::max(result.fixed, time_of(seen));
      } else if (seen == each.expected || seen < time) {
        result.running = std::max(result.running, std::min(seen, time - 1));
      } else {
        each.expected = seen;
        return false;
      }
      return true;
    };
    open.erase(std::remove_if(open.begin(), open.end(), settled), open.end());
  }
  // Lowered by others all the time: no reason to wait for their end.
  if (!open.empty()) result.fixed = kUnbounded;
  return Status();
}

}  // namespace rdmacc
