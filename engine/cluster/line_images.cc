#include "engine/cluster/line_images.h"

#include <algorithm>

namespace rdmacc {

LineImages::Image* LineImages::take() {
  while (!pending_.empty() && pending_.front().chain <= last_completed_) {
    free_.push_back(pending_.front().image);
    pending_.pop_front();
  }
  if (free_.empty()) {
    std::byte* block = pool_.take(RegisteredPool::kBlockBytes);
    if (block == nullptr) return nullptr;
    auto* images = reinterpret_cast<Image*>(block);
    for (size_t i = 0; i < RegisteredPool::kBlockBytes / sizeof(Image); ++i) {
      free_.push_back(images + i);
    }
  }
  Image* image = free_.back();
  free_.pop_back();
  return image;
}

void LineImages::completed(Image* image, uint64_t number) {
  CHECK(number <= last_chain_);
  CHECK(image != nullptr);
  last_completed_ = std::max(last_completed_, number);
  free_.push_back(image);
}

}  // namespace rdmacc
