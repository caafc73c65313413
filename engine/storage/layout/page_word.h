#pragma once
#include <cstdint>

namespace rdmacc {

// What a page holds. Values are stored in the region.
enum class PageKind : uint8_t {
  kUnused = 0,
  kSlot = 1,
  kGroup = 2,
  kBucket = 3,
  kOverflow = 4,
  kArray = 5,        // small root arrays
  kRun = 6,          // first page of a root array that takes whole pages
  kRunTail = 7,      // other pages of a run
  kOverflowRun = 8,  // first page of an overflow block that takes whole pages
};

constexpr bool is_run(PageKind kind) {
  return kind == PageKind::kRun || kind == PageKind::kOverflowRun;
}

// Transactions have addresses of headers there from earlier ones.
constexpr bool holds_headers(PageKind kind) {
  return kind == PageKind::kSlot || kind == PageKind::kGroup;
}

// One page's word in the region's page table: 8 bits of kind, then the size of its units in
// bytes (of runs: the number of pages).
struct PageWord {
  uint64_t bits = 0;
  static constexpr PageWord make(PageKind kind, uint64_t value) {
    return PageWord{(value << 8) | static_cast<uint64_t>(kind)};
  }
  constexpr PageKind kind() const { return static_cast<PageKind>(bits & 0xFF); }
  constexpr uint64_t value() const { return bits >> 8; }
};

}  // namespace rdmacc
