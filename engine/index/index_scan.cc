#include "engine/index/index_scan.h"

#include <algorithm>

namespace rdmacc {
namespace {
constexpr size_t kLeavesAheadMax = 16;
// A scan of so many leaves at once conflicts with many writers.
constexpr size_t kLeavesOfWideRead = 4;
}  // namespace

void IndexScan::seek(const IndexRef& index, IndexRange range, bool backward,
                     uint32_t visible_before) {
  index_ = index;
  range_ = std::move(range);
  backward_ = backward;
  visible_before_ = visible_before;
  leaves_ahead_ = 1;
  ended_ = range_.empty();
  using Side = TreePlace::Side;
  if (backward) {
    side_ = range_.high_bounded ? Side::kBefore : Side::kEnd;
    from_ = range_.high_bounded ? range_.high : std::string();
    // Nothing is below the empty entry.
    ended_ = ended_ || (range_.high_bounded && range_.high.empty());
  } else {
    side_ = Side::kAt;
    from_ = range_.low_bounded ? range_.low : std::string();
  }
}

void IndexScan::take(const TreeNode& leaf) {
  const size_t first = range_.low_bounded ? leaf.lower_bound(range_.low) : 0;
  const size_t end = range_.high_bounded ? leaf.lower_bound(range_.high) : leaf.size();
  for (size_t i = first; i < end; i++) {
    const std::string_view entry = leaf.item(backward_ ? first + end - 1 - i : i);
    bytes_ += entry;
    sizes_.push_back(entry.size());
  }
}

// The scan goes on where the leaf ends, or has ended with it.
void IndexScan::step_behind(const FoundNode& leaf) {
  const TreeNode& node = leaf.node;
  if (backward_) {
    ended_ = !leaf.exists || node.low.empty() || (range_.low_bounded && node.low <= range_.low);
    side_ = TreePlace::Side::kBefore;
    from_ = node.low;
  } else {
    ended_ =
        !leaf.exists || !node.high_bounded || (range_.high_bounded && node.high >= range_.high);
    side_ = TreePlace::Side::kAt;
    from_ = node.high;
  }
}

Status IndexScan::next(Session& session, std::vector<std::string_view>& batch) {
  CHECK(index_.table != kNoTable);  // seek() came first
  batch.clear();
  bytes_.clear();
  sizes_.clear();
  FoundNodes leaves;
  while (sizes_.empty() && !ended_) {
    if (leaves_ahead_ >= kLeavesOfWideRead) session.note_wide_read();
    Descent descent(session, index_, visible_before_);
    const Descent::Reach reach{.leaves_max = leaves_ahead_,
                               .backward = backward_,
                               .bounded = backward_ ? range_.low_bounded : range_.high_bounded,
                               .bound = backward_ ? range_.low : range_.high};
    RDMACC_RETURN_IF_ERROR(descent.find_leaves({side_, from_}, reach, leaves));
    CHECK(!leaves.empty());
    for (const FoundNode& leaf : leaves) take(leaf.node);
    const bool from_the_end = side_ == TreePlace::Side::kEnd;
    const std::string stood_at = std::move(from_);
    step_behind(leaves.back());
    const bool gets_on = from_the_end || (backward_ ? from_ < stood_at : from_ > stood_at);
    if (!ended_ && !gets_on) return Status(Code::kCorrupt, "an index leaf that leads nowhere");
    leaves_ahead_ = std::min(leaves_ahead_ * 2, kLeavesAheadMax);
  }
  size_t at = 0;
  for (const size_t size : sizes_) {
    batch.emplace_back(bytes_.data() + at, size);
    at += size;
  }
  return Status();
}

}  // namespace rdmacc
