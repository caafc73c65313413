#pragma once
#include "rdma/base/random.h"

namespace rdmacc {

// Of which transactions something is measured that costs more than a count: of the first kAll each;
// of those behind them one in kEvery, by chance, which stands for as many. One thread.
class Sampling {
 public:
  static constexpr uint64_t kAll = 1'000, kEvery = 8;

  // For how many the next one stands; 0: it is not measured.
  uint64_t draw_weight() {
    if (drawn_ < kAll) {
      ++drawn_;
      return 1;
    }
    return random_.below(kEvery) == 0 ? kEvery : 0;
  }

 private:
  uint64_t drawn_ = 0;
  Random random_{1};
};

}  // namespace rdmacc
