#pragma once
#include <vector>

#include "engine/storage/reclaimer.h"

namespace rdmacc {

// Makes empty pages of slots and groups usable for anything. A lock CAS on a stale address has to
// hit a lock word, so such a page may become something else only when no address in it is known
// any more:
//
//   1  the empty pages are withdrawn: no unit there is handed out
//   2  a new era begins: transactions that begin from then on find the caches of addresses of
//      their workers emptied, at this node's threads (Superblock::address_era) as at coordinators
//   3  two epochs later every transaction that began before has ended
//   4  pages without a locked header are zeroed and given back
//
// The last step comes between two epochs of a deterministic protocol's order (maintenance does),
// whose executors forget addresses when they begin one.
//
// The node's thread 0 alone. After a restart of the node the pages are empty ones again.
class PageRecycler {
 public:
  PageRecycler(Worker& worker, const OwnedRegion& region, Arena& arena, Reclaimer& reclaimer)
      : worker_(worker), region_(region), arena_(arena), reclaimer_(reclaimer) {}

  bool pending() const;
  // Pages that wait for the epoch.
  size_t count() const { return withdrawn_.size(); }
  // The next step, if it may be made; yields.
  void advance();

 private:
  bool worth_it() const;
  void begin();

  // Caches of addresses are emptied that often at most: while memory is scarce, and while not.
  static constexpr uint64_t kPauseUsScarce = 20'000, kPauseUs = 1'000'000;
  static constexpr uint64_t kScarce = 4;  // pages left for each empty one

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Reclaimer& reclaimer_;
  std::vector<uint64_t> withdrawn_;
  uint64_t epoch_ = 0;  // in which the era began
  uint64_t begun_us_ = 0;
  bool begun_ = false;  // ever
};

}  // namespace rdmacc
