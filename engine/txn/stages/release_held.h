#pragma once
#include "engine/storage/layout/tuple.h"
#include "engine/txn/rule/access.h"
#include "rdma/coroutine/in_place.h"

namespace rdmacc {

// Gives a header back, where verbs are carried out in place (rdma/coroutine/in_place.h). `held`: an
// Access, or what has been noted of one; `at`: where the port has found it. False: the node is not
// there, or did not do it; then it is one of the lost, of which nothing else is wanted.
template <typename Port, typename HeldType>
[[gnu::always_inline]] inline bool release_held(Port& port, const HeldType& held,
                                                const typename Port::Place& at, LostNodes& lost) {
  if (lost.has(held.header.node())) return false;
  if (port.lost(at)) {
    lost.add(held.header.node());
    return false;
  }
  if (held.reader_count > 0) port.fetch_add(at, kOffsetOfLock, 0 - uint64_t{held.reader_count});
  // The lease first: the lock's holder may lock the lease.
  if (held.lease_locked) port.write(at, kOffsetOfSundial, &held.lease, 8);
  constexpr uint64_t kFree = 0;
  if (held.locked) port.write(at, kOffsetOfLock, &kFree, 8);
  if (held.registered) port.write(at, kOffsetOfWaiter, &kFree, 8);
  if (!port.failed()) return true;
  lost.add(held.header.node());
  port.forget_failure();
  return false;
}

}  // namespace rdmacc
