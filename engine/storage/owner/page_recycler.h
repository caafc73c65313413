#pragma once
#include <optional>

#include "engine/storage/owner/reclaimer.h"
#include "engine/storage/wire/storage_service.h"

namespace rdmacc {

// Makes empty pages of slots and groups usable for anything. A lock CAS on a stale address has to
// hit a lock word, so such a page may become something else only when no address in it is known
// any more:
//
//   1  the empty pages are withdrawn: no unit there is handed out, unless nothing else is left
//   2  a new era begins: transactions that begin from then on find the caches of addresses of
//      their workers emptied, at this node's threads (Superblock::address_era) as at coordinators
//   3  two epochs later every transaction that began before has ended
//   4  pages without a locked header are zeroed and given back; the others serve their own size,
//      and come into question again when their headers are unlocked
//
// The last step comes between two epochs of a deterministic protocol's order (maintenance does),
// whose executors forget addresses when they begin one.
//
// The node's thread 0 alone. After a restart of the node the pages are empty ones again.
class PageRecycler {
 public:
  PageRecycler(Worker& worker, const OwnedRegion& region, Arena& arena, Reclaimer& reclaimer)
      : worker_(worker), region_(region), arena_(arena), reclaimer_(reclaimer) {}

  void recycle_every(uint64_t us) { pause_us_ = us; }
  void observe(StructureObserver* observer) { observer_ = observer; }
  bool pending() const;
  // The next step, if it may be made; yields.
  void advance();
  // Pages keep their sizes from now on.
  bool out_of_eras() const { return reclaimer_.epoch() != 0 && reclaimer_.eras_left() == 0; }

 private:
  bool worth_it() const;
  bool refused_due() const;
  void begin();

  // Caches of addresses are emptied that often at most: while memory is scarce, and while not, or
  // when half of all eras are used up.
  static constexpr uint64_t kPauseUsScarce = 20'000;
  static constexpr uint64_t kScarce = 4;  // pages left for each empty one

  Worker& worker_;
  const OwnedRegion& region_;
  Arena& arena_;
  Reclaimer& reclaimer_;
  uint64_t pause_us_ = StorageService::kRecycleEveryUs;
  StructureObserver* observer_ = nullptr;
  std::optional<StructureSpan> span_;  // while pages are withdrawn
  uint64_t epoch_ = 0;                 // in which the era began
  uint64_t begun_us_ = 0, refused_look_us_ = 0;
  bool begun_ = false;  // ever
};

}  // namespace rdmacc
