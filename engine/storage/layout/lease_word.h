#pragma once
#include "engine/api/plain_data.h"

// DRTM's lease, in a header's rts: until when what a reader has read stays as it is, by the
// cluster's clock.
//
//   0                          none
//   end 48 | worker 16         one transaction's of that worker, which has no other like it
//   end 48 | kSharedLease 16   any number of transactions'
//
// That is a ctts for the protocols that have theirs there: MVCC takes a lease for a reader that is
// a little younger than it is, and what readers of MVCC have left there ends at once. A word only
// rises, whatever changes it.

namespace rdmacc {

// As in the paper, for transactions that read and write.
constexpr uint64_t kLeaseUs = 400;
// Between the earliest and the latest time that it may be (ClockBounds). On a host whose clock is
// off by more no leases are taken.
constexpr uint64_t kClockWidthUsMax = 200;

constexpr uint64_t kSharedLease = 0xFFFF;
constexpr uint64_t lease_word(uint64_t end_us, uint64_t holder) { return end_us << 16 | holder; }
constexpr uint64_t lease_end_us(uint64_t word) { return word >> 16; }
constexpr bool lease_shared(uint64_t word) { return (word & kSharedLease) == kSharedLease; }
// With the same end, for all.
constexpr uint64_t shared_lease(uint64_t word) { return word == 0 ? 0 : word | kSharedLease; }

// A lease that ends at `end_us`, drawn at a time not before `earliest_us`, tells by itself what was
// over when it was drawn.
constexpr bool may_draw_lease(uint64_t end_us, uint64_t earliest_us) {
  return end_us <= earliest_us + kLeaseUs + kClockWidthUsMax;
}
constexpr bool over_at_draw(uint64_t word, uint64_t drawn) {
  return lease_end_us(word) + kLeaseUs + kClockWidthUsMax < lease_end_us(drawn);
}

}  // namespace rdmacc
