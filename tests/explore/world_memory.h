#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// Memory that can be put back to an earlier state as a whole, so that a simulated cluster, its
// suspended coroutines included, can be run again and again from one point. Everything that the
// cluster is made of lies either in an arena, which operator new takes its memory from while an
// Inside is alive, or in ranges that were named to track(): coroutine stacks and regions. After
// take_snapshot() the first store into each page is noticed (the page was write-protected) and the
// page is kept as it was; restore() copies those pages back. Nothing is constructed or destroyed
// by that, so nothing outside may hold on to what was allocated inside after the snapshot (no
// static of the engine may own memory that it first asks for during a transaction).
//
// One per process, one thread. Not for sanitized builds, which keep track of stacks themselves.

namespace rdmacc {

class WorldMemory {
 public:
  // Which transaction allocates where while it lives.
  template <bool kInside>
  class Allocating {
   public:
    Allocating() : before_(allocating_) { allocating_ = kInside; }
    ~Allocating() { allocating_ = before_; }
    Allocating(const Allocating&) = delete;
    Allocating& operator=(const Allocating&) = delete;

   private:
    const bool before_;
  };
  using Inside = Allocating<true>;    // operator new allocates in the arena
  using Outside = Allocating<false>;  // not: for what a callback from inside keeps for itself

  static WorldMemory& instance();

  void track(void* start, size_t bytes);  // whole pages, mapped and writable
  void take_snapshot();
  void restore();
  // Ends the protection: before what is in tracked ranges is destroyed.
  void thaw();
  // Forgets the snapshot and what was tracked, and empties the arena. Whatever was allocated
  // there must have been destroyed.
  void drop();
  // Pages that have changed in any run since the snapshot.
  struct ChangedPage {
    const std::byte* page;
    const std::byte* at_snapshot;  // its content then
  };
  size_t changed_pages() const { return kept_.size(); }
  ChangedPage changed_page(size_t i) const { return {kept_[i], kept_pages_ + i * kPageBytes}; }
  static constexpr size_t kPageBytes = 4096;

  // For operator new and delete.
  static bool allocating() { return allocating_; }
  void* allocate(size_t bytes, size_t alignment);
  bool owns(const void* memory) const;
  void give_back(void* memory, size_t bytes);
  // For the signal handler: true if the page was protected by us.
  bool note_store(void* address);

 private:
  static constexpr size_t kArenaBytes = 1ull << 30;  // of address space
  static constexpr size_t kKeptPagesMax = 64 * 1024;
  static constexpr size_t kClasses = 28;  // powers of two

  struct Range {
    std::byte* start;
    size_t bytes;
  };
  // What restore() puts back besides pages.
  struct ArenaState {
    size_t used = 0;
    void* free[kClasses] = {};
  };

  WorldMemory();
  void protect(bool writable);

  static inline bool allocating_ = false;
  std::byte* arena_ = nullptr;
  std::byte* kept_pages_ = nullptr;  // contents at the snapshot of kept_[i]
  ArenaState state_, state_at_snapshot_;
  std::vector<Range> tracked_;
  std::vector<Range> protected_;
  std::vector<std::byte*> kept_;
  bool snapshot_ = false;
};

}  // namespace rdmacc
