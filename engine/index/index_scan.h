#pragma once
#include <string>
#include <vector>

#include "engine/index/descent.h"

// A cursor over the entries of an ordered index within a range, in their order or against it. It
// reads one leaf first, then more and more ahead in one round, so that a short answer costs one.
// Leaves are read by the protocol: that no other entries are in the range is part of what the
// transaction has read.

namespace rdmacc {

// low <= entry < high.
struct IndexRange {
  std::string low, high;
  bool low_bounded = false, high_bounded = false;

  bool empty() const { return low_bounded && high_bounded && low >= high; }
};

class IndexScan {
 public:
  // To the range's beginning (its end, backward); nothing is read yet. Own writes of commands >=
  // visible_before are not seen; others, made since, may or may not be.
  void seek(const IndexRef& index, IndexRange range, bool backward,
            uint32_t visible_before = kEveryCommand);
  // The next entries; an empty batch is the end. Views live until the next call of either. The
  // session is in the transaction that the scan was sought in, at every call.
  Status next(Session& session, std::vector<std::string_view>& batch);

 private:
  void take(const TreeNode& leaf);
  void step_behind(const FoundNode& leaf);

  IndexRef index_;
  IndexRange range_;
  bool backward_ = false, ended_ = true;
  uint32_t visible_before_ = kEveryCommand;
  size_t leaves_ahead_ = 1;
  // Where to read on.
  TreePlace::Side side_ = TreePlace::Side::kAt;
  std::string from_;
  // The batch: what is viewed may end with the next write.
  std::string bytes_;
  std::vector<size_t> sizes_;
};

}  // namespace rdmacc
