#pragma once
#include "rdma/base/base.h"

// CHECK: a programmer error or a corrupted structure; always compiled in, prints and aborts.
// DCHECK: the same for checks that cost O(n); compiled out with NDEBUG.

namespace rdmacc {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}  // namespace rdmacc

#define CHECK(condition)                                      \
  do {                                                        \
    if (__builtin_expect(!(condition), 0)) {                  \
      ::rdmacc::check_failed(#condition, __FILE__, __LINE__); \
    }                                                         \
  } while (false)

#ifdef NDEBUG
#define DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#else
#define DCHECK(condition) CHECK(condition)
#endif
