// The Commit stage's part for a multi-version protocol: the version that is written over is kept.
#include <algorithm>

#include "engine/storage/owner/owned_region.h"
#include "engine/txn/stages/installer.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// The overflow block that the word refers to.
GlobalAddress block_at(const Write& write, const std::byte* word) {
  uint64_t offset = 0;
  memcpy(&offset, word, sizeof(offset));
  return GlobalAddress::make(write.header.node(), offset & kLowOffsetMask);
}

}  // namespace

// Not when an install that was cut short had come as far as the stamp.
bool Installer::has_versions_to_keep(const Write& write, const Before& before) const {
  return keeps_version(write) && before.header.wts != record_.stamp &&
         (!options_.guarded || holds(write, before.header));
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
    if (options_.blocks == nullptr) continue;
    before.fresh = options_.blocks
                       ->take(write.header.node(), versions_bytes(write.record_size, write.history),
                              allocation_counters_)
                       .block;
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

// An install that is repeated may find what it has listed already.
void Installer::evict(GlobalAddress block) {
  std::vector<GlobalAddress>* const evicted = options_.evicted;
  if (evicted == nullptr) return;
  const bool again =
      options_.guarded && std::find(evicted->begin(), evicted->end(), block) != evicted->end();
  if (!again) evicted->push_back(block);
}

void Installer::keep(GlobalAddress block) {
  if (options_.guarded && options_.evicted != nullptr) std::erase(*options_.evicted, block);
}

// The oldest version goes where all places are taken.
void Installer::make_room(const Write& write, const Before& before) {
  const uint32_t chosen = choose_place(write, before);
  VersionHead old;
  memcpy(&old, before.versions + chosen * kVersionBytes, sizeof(old));
  const bool in_use = old.stamp != kNoVersionStamp && old.stamp != kLostVersionStamp &&
                      old.stamp != before.header.wts;
  if (in_use && (old.flags & kFlagOverflow) != 0) {
    evict(block_at(write, before.versions + chosen * kVersionBytes + sizeof(old)));
  }
  version_at_ = GlobalAddress::make(write.header.node(),
                                    before.block + version_place(write.record_size, chosen));
}

// The newest record becomes an old version, or it is lost: then its overflow block has no use.
void Installer::prepare_version(const Write& write, const Before& before, Words& words) {
  CHECK(before.record != nullptr);
  const bool overflows = (before.header.flags & kFlagOverflow) != 0;
  const GlobalAddress overflow =
      overflows ? block_at(write, before.record + kBeforeRecord) : GlobalAddress{};
  if (before.block == 0 && before.fresh.null()) {
    words.reference = kOlderVersionsLost;
    tells_loss_ = true;
    if (overflows) evict(overflow);
    return;
  }
  // There was no block for it when this was tried before.
  if (overflows) keep(overflow);
  if (before.block != 0) {
    make_room(write, before);
  } else {
    fresh_ = before.fresh;
    lost_ = before.lost;
    words.reference = fresh_.offset();
    version_at_ = fresh_.plus(version_place(write.record_size, 0));
  }
  version_ = before.record + sizeof(uint64_t);
  words.version_stamp = before.header.wts;
  const VersionHead head{before.header.wts, before.header.length, before.header.flags};
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

}  // namespace rdmacc
