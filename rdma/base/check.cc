#include "rdma/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace rdmacc {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "rdmacc: CHECK(%s) failed at %s:%d\n", expression, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace rdmacc
