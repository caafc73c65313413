#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

// The switch that each planted fault stands behind (tests/mutation/README.md). One fault is on in
// a process, or none. How often each was asked for is noted, so that a run that never comes to one
// need not be repeated with it.

namespace rdmacc::planted {

constexpr uint32_t kFaultsMax = 16'384;  // 0 is none

extern uint32_t chosen;
extern std::array<uint64_t, kFaultsMax> reached;

// What the compiler evaluates is as it was written.
constexpr bool fault(uint32_t number) {
  if (std::is_constant_evaluated()) return false;
  ++reached[number];
  return chosen == number;
}

}  // namespace rdmacc::planted
