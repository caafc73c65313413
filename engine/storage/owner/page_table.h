#pragma once
#include <map>

#include "engine/storage/layout/page_word.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/owner/owned_region.h"

namespace rdmacc {

// Hands out the region's 256 KB pages, backing the region with memory as it goes. A page is
// published by its word and then by the superblock's pages_used. When a page may be given back is
// the arena's business. Owned by the arena; one thread.
class PageTable {
 public:
  PageTable(Endpoint& endpoint, const RegionLayout& layout, const OwnedRegion& region);

  // Backs and checks the pages that the superblock says are used; on a reopened region finds
  // the unused ones among them. kCorrupt when words do not make sense.
  Status open();

  // Index of a fresh page; its memory is zero. kNoSpace.
  Result<uint64_t> take(PageKind kind, uint32_t unit_bytes);
  // Index of the first of `pages` contiguous ones; `kind` is that of a run.
  Result<uint64_t> take_run(PageKind kind, uint64_t pages);
  // A run, or one page. Its memory is zero.
  void give_back(uint64_t first);

  PageWord word(uint64_t index) const;
  uint64_t pages_used() const { return pages_used_; }
  // Pages that may be taken, never used ones included.
  uint64_t pages_left() const { return layout_.page_count - pages_used_ + unused_count_; }
  uint64_t backed_bytes() const { return backed_end_ - layout_.pages; }

 private:
  Result<uint64_t> take_contiguous(uint64_t pages);
  Status back_until(uint64_t page_end);
  void set_word(uint64_t index, PageWord word);
  void add_unused(uint64_t first, uint64_t pages);

  Endpoint& endpoint_;
  const RegionLayout layout_;
  const OwnedRegion& region_;
  uint64_t pages_used_ = 0;
  uint64_t backed_end_ = 0;
  std::map<uint64_t, uint64_t> unused_;  // first page -> count, below pages_used_
  uint64_t unused_count_ = 0;
};

}  // namespace rdmacc
