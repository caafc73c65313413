#include "engine/txn/stages/kept_version.h"

#include <algorithm>

#include "engine/storage/owner/owned_region.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// The overflow block that the word refers to.
GlobalAddress block_at(const Write& write, const std::byte* word) {
  uint64_t offset = 0;
  memcpy(&offset, word, sizeof(offset));
  return GlobalAddress::make(write.header.node(), offset & kLowOffsetMask);
}

// An empty place, or that of the oldest version. A place that has the stamp already is where an
// install that was cut short had put it.
uint32_t choose_place(const Write& write, const VersionBefore& before) {
  const auto rank = [&](uint32_t v) {
    uint64_t at = 0;
    memcpy(&at, before.versions + v * kVersionBytes, sizeof(at));
    return at == before.header.wts ? 0 : at == kNoVersionStamp || at == kLostVersionStamp ? 1 : at;
  };
  uint32_t chosen = 0;
  uint64_t least = rank(0);
  for (uint32_t v = 1; v < write.history; v++) {
    const uint64_t other = rank(v);
    if (other >= least) continue;
    chosen = v;
    least = other;
  }
  return chosen;
}

// An install that is repeated may find what it has listed already.
void evict(GlobalAddress block, const InstallOptions& options) {
  std::vector<GlobalAddress>* const evicted = options.evicted;
  if (evicted == nullptr) return;
  const bool again =
      options.guarded && std::find(evicted->begin(), evicted->end(), block) != evicted->end();
  if (!again) evicted->push_back(block);
}

void keep(GlobalAddress block, const InstallOptions& options) {
  if (options.guarded && options.evicted != nullptr) std::erase(*options.evicted, block);
}

}  // namespace

void find_block(const Write& write, const InstallOptions& options, VersionBefore& before) {
  CHECK(options.region_bytes > 0);
  uint64_t reference = 0;
  memcpy(&reference, before.record + kBeforeRecord + write.record_size, sizeof(reference));
  if (may_be_versions(reference, write.record_size, write.history, options.region_bytes)) {
    before.block = reference;
    return;
  }
  before.lost = reference != kNoOlderVersion;
  if (options.blocks == nullptr) return;
  VerbCounters unseen;  // none that a transaction's stage shows
  const uint64_t bytes = versions_bytes(write.record_size, write.history);
  before.fresh = options.blocks->take(write.header.node(), bytes, unseen).block;
}

// The oldest version goes where all places are taken.
void KeptVersion::make_room(const Write& write, const VersionBefore& before,
                            const InstallOptions& options) {
  const uint32_t chosen = choose_place(write, before);
  VersionHead old;
  memcpy(&old, before.versions + chosen * kVersionBytes, sizeof(old));
  const bool in_use = old.stamp != kNoVersionStamp && old.stamp != kLostVersionStamp &&
                      old.stamp != before.header.wts;
  if (in_use && (old.flags & kFlagOverflow) != 0) {
    evict(block_at(write, before.versions + chosen * kVersionBytes + sizeof(old)), options);
  }
  at_ = GlobalAddress::make(write.header.node(),
                            before.block + version_place(write.record_size, chosen));
}

KeptVersion::KeptVersion(const Write& write, const VersionBefore& before,
                         const InstallOptions& options, VersionWords& words) {
  CHECK(before.record != nullptr);
  const bool overflows = (before.header.flags & kFlagOverflow) != 0;
  const GlobalAddress overflow =
      overflows ? block_at(write, before.record + kBeforeRecord) : GlobalAddress{};
  if (before.block == 0 && before.fresh.null()) {
    words.reference = kOlderVersionsLost;
    tells_loss_ = true;
    if (overflows) evict(overflow, options);
    return;
  }
  // There was no block for it when this was tried before.
  if (overflows) keep(overflow, options);
  bytes_ = before.record + sizeof(uint64_t);
  if (before.block != 0) {
    make_room(write, before, options);
  } else {
    fresh_ = before.fresh;
    lost_ = before.lost;
    words.reference = fresh_.offset();
    const uint64_t slot = write.header.offset();
    memcpy(before.record, &slot, sizeof(slot));
  }
  words.stamp = before.header.wts;
  const VersionHead head{before.header.wts, before.header.length, before.header.flags};
  memcpy(bytes_, &head, sizeof(head));
}

}  // namespace rdmacc
