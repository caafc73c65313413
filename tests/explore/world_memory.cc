#include "tests/explore/world_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "rdma/base/check.h"
#include "rdma/base/large_blocks.h"

namespace rdmacc {
namespace {

constexpr size_t kPage = WorldMemory::kPageBytes;

void* map_memory(size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(mapped != MAP_FAILED);
  return mapped;
}

// Runs on a stack of its own: the page may be the coroutine's stack.
void on_segv(int number, siginfo_t* about, void*) {
  if (WorldMemory::instance().note_store(about->si_addr)) return;
  signal(number, SIG_DFL);  // a real one: the store is tried again and ends the process
}

size_t class_of(size_t bytes) { return static_cast<size_t>(std::bit_width(bytes - 1)); }

}  // namespace

WorldMemory& WorldMemory::instance() {
  alignas(WorldMemory) static std::byte place[sizeof(WorldMemory)];
  static WorldMemory* memory = new (place) WorldMemory;  // never destroyed
  return *memory;
}

WorldMemory::WorldMemory()
    : arena_(static_cast<std::byte*>(map_memory(kArenaBytes))),
      kept_pages_(static_cast<std::byte*>(map_memory(kKeptPagesMax * kPage))) {
  CHECK(sysconf(_SC_PAGESIZE) == kPage);
  LargeBlocks::get();  // a process has it once, whatever becomes of the world that asks first
  kept_.reserve(kKeptPagesMax);  // the signal handler must not allocate
  stack_t stack{};
  stack.ss_size = 64 * 1024;
  stack.ss_sp = map_memory(stack.ss_size);
  CHECK(sigaltstack(&stack, nullptr) == 0);
  struct sigaction action {};
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
}

void WorldMemory::track(void* start, size_t bytes) {
  CHECK(!snapshot_ && reinterpret_cast<uintptr_t>(start) % kPage == 0 && bytes % kPage == 0);
  tracked_.push_back(Range{static_cast<std::byte*>(start), bytes});
}

void WorldMemory::protect(bool writable) {
  for (const Range& range : protected_) {
    const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    CHECK(mprotect(range.start, range.bytes, access) == 0);
  }
}

void WorldMemory::take_snapshot() {
  CHECK(!snapshot_ && !allocating_);
  protected_ = tracked_;
  protected_.push_back(Range{arena_, (state_.used + kPage - 1) / kPage * kPage});
  state_at_snapshot_ = state_;
  kept_.clear();
  snapshot_ = true;
  protect(false);
}

bool WorldMemory::note_store(void* address) {
  auto* at = static_cast<std::byte*>(address);
  for (const Range& range : protected_) {
    if (at < range.start || at >= range.start + range.bytes) continue;
    std::byte* page = at - reinterpret_cast<uintptr_t>(at) % kPage;
    if (kept_.size() == kKeptPagesMax) return false;
    std::memcpy(kept_pages_ + kept_.size() * kPage, page, kPage);
    kept_.push_back(page);
    return mprotect(page, kPage, PROT_READ | PROT_WRITE) == 0;
  }
  return false;
}

void WorldMemory::restore() {
  CHECK(snapshot_ && !allocating_);
  for (size_t i = 0; i < kept_.size(); ++i) {
    std::memcpy(kept_[i], kept_pages_ + i * kPage, kPage);
  }
  state_ = state_at_snapshot_;
}

void WorldMemory::thaw() {
  if (snapshot_) protect(true);
  protected_.clear();
  snapshot_ = false;
}

void WorldMemory::drop() {
  CHECK(!allocating_ && !snapshot_);
  tracked_.clear();
  kept_.clear();
  state_ = ArenaState();
}

// ---- The arena: free lists of powers of two. A class's blocks are never given to another.

void* WorldMemory::allocate(size_t bytes, size_t alignment) {
  const size_t size_class = class_of(std::max<size_t>({bytes, alignment, 16}));
  CHECK(size_class < kClasses);
  if (void* memory = state_.free[size_class]) {
    std::memcpy(&state_.free[size_class], memory, sizeof(void*));
    return memory;
  }
  const size_t align = std::min<size_t>(size_t{1} << size_class, std::max<size_t>(alignment, 64));
  state_.used = (state_.used + align - 1) / align * align;
  CHECK(state_.used + (size_t{1} << size_class) <= kArenaBytes);
  void* memory = arena_ + state_.used;
  state_.used += size_t{1} << size_class;
  return memory;
}

bool WorldMemory::owns(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  return at >= arena_ && at < arena_ + kArenaBytes;
}

// The size is only known to some operator delete; the others leave the block to the next restore.
void WorldMemory::give_back(void* memory, size_t bytes) {
  if (bytes == 0 || !allocating_) return;
  const size_t size_class = class_of(std::max<size_t>(bytes, 16));
  std::memcpy(memory, &state_.free[size_class], sizeof(void*));
  state_.free[size_class] = memory;
}

namespace {

void* allocate_anywhere(size_t bytes, size_t alignment) {
  if (WorldMemory::allocating()) return WorldMemory::instance().allocate(bytes, alignment);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void free_anywhere(void* memory, size_t bytes) {
  if (memory == nullptr) return;
  WorldMemory& world = WorldMemory::instance();
  if (world.owns(memory)) return world.give_back(memory, bytes);
  std::free(memory);
}

void* checked(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace
}  // namespace rdmacc

void* operator new(size_t bytes) { return rdmacc::checked(rdmacc::allocate_anywhere(bytes, 1)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return rdmacc::checked(rdmacc::allocate_anywhere(bytes, static_cast<size_t>(alignment)));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return rdmacc::allocate_anywhere(bytes, 1);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return rdmacc::allocate_anywhere(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { rdmacc::free_anywhere(memory, 0); }
void operator delete(void* memory, size_t bytes) noexcept { rdmacc::free_anywhere(memory, bytes); }
void operator delete(void* memory, std::align_val_t) noexcept { rdmacc::free_anywhere(memory, 0); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  rdmacc::free_anywhere(memory, 0);
}
