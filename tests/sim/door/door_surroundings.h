#pragma once
#include "tests/sim/door/door.h"

namespace rdmacc {

// What goes on beside Door's transactions, each in a coroutine and a session of its own until it is
// stopped: a table is dropped and made again, a node's memory is filled and emptied, rows come and
// go.
class DoorSurroundings {
 public:
  DoorSurroundings(Door& door, const TxnOptions& options, uint64_t seed)
      : door_(door), options_(options), random_(seed), shapes_(seed ^ 0x5A4E) {}

  // Drops and makes again, in half of the runs with rows of another size each time. Not ok: neither
  // a lack of memory nor a node that is away.
  Status drop_again_and_again(Session& session);
  // Rows of a page each, until there is no room.
  Status fill_up(Session& session);
  // From then on: some of them are deleted, and others fill their place.
  Status fill_again_and_again(Session& session);
  // Rows that no transaction asks for are inserted and deleted: under MVCC their tombstones are
  // taken out of groups that transactions use.
  Status bury_again_and_again(Session& session);
  void stop() { stopped_ = true; }

  uint64_t drops() const { return drops_; }
  uint64_t full() const { return full_; }  // times that there was no room

 private:
  void pause(Session& session, uint64_t us_max);
  Status drop(Session& session);
  Status make(Session& session);
  Status put_filler(Session& session, uint64_t number);
  Status remove_filler(Session& session, uint64_t number);
  Status bury(Session& session);
  Status in_transaction(Session& session, const std::function<Status()>& work);

  Door& door_;
  const TxnOptions options_;
  Random random_;
  Random shapes_;  // of the visited table; apart, so that all else of a seed stays as it was
  const bool other_shapes_ = shapes_.percent(50);
  bool stopped_ = false;
  uint64_t first_filler_ = 0, next_filler_ = 0;
  uint64_t next_buried_ = 0;
  uint64_t drops_ = 0, full_ = 0;
};

}  // namespace rdmacc
