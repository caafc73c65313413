#pragma once
#include "rdma/base/base.h"

// SUNDIAL's header word: lock, wts and rts in 64 bits, so that locking and renewing a lease are
// one CAS each (docs/protocols.md §3.5). The owner of an index needs it because a split must end
// the leases of readers that found nothing in the group.
//
//   unlocked   0 | wts 47 | rts - wts 16
//   locked     1 | wts 47 | worker id of the holder 16

namespace rdmacc {

constexpr uint64_t kSundialLockBit = 1ull << 63;
constexpr uint64_t kSundialDeltaMax = 0xFFFF;
constexpr uint64_t kSundialWtsMax = (1ull << 47) - 1;

constexpr bool sundial_locked(uint64_t word) { return (word & kSundialLockBit) != 0; }
constexpr uint64_t sundial_wts(uint64_t word) { return (word >> 16) & kSundialWtsMax; }
// Of a locked word, whose delta is gone, the largest that it can have had.
constexpr uint64_t sundial_rts_bound(uint64_t word) {
  return sundial_wts(word) + (sundial_locked(word) ? kSundialDeltaMax : word & kSundialDeltaMax);
}
constexpr uint64_t sundial_unlocked_word(uint64_t wts, uint64_t delta) {
  return ((wts & kSundialWtsMax) << 16) | delta;
}
// An unlocked word whose lease ends at `rts`, which is later than it did. When that is too far from
// wts for the delta, wts moves along: the version was valid then, too.
constexpr uint64_t sundial_renewed(uint64_t word, uint64_t rts) {
  const uint64_t wts = sundial_wts(word);
  return rts - wts <= kSundialDeltaMax
             ? sundial_unlocked_word(wts, rts - wts)
             : sundial_unlocked_word(rts - kSundialDeltaMax, kSundialDeltaMax);
}
constexpr uint64_t sundial_locked_word(uint64_t wts, WorkerId holder) {
  return kSundialLockBit | ((wts & kSundialWtsMax) << 16) | holder;
}

}  // namespace rdmacc
