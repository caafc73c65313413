#include "engine/storage/owner/page_table.h"

#include <algorithm>

namespace rdmacc {

namespace {

constexpr uint64_t kChunkBytes = 4ull << 20;  // some huge pages
constexpr uint64_t kAheadBytesMax = 16ull << 20;

bool plausible(PageWord word, uint64_t pages_left) {
  switch (word.kind()) {
    case PageKind::kUnused:
    case PageKind::kRunTail:
      return true;
    case PageKind::kRun:
    case PageKind::kOverflowRun:
      return word.value() > 0 && word.value() <= pages_left;
    case PageKind::kSlot:
    case PageKind::kGroup:
    case PageKind::kBucket:
    case PageKind::kOverflow:
    case PageKind::kArray:
      return word.value() >= 64 && word.value() <= kPageBytes && word.value() % 64 == 0;
  }
  return false;
}

}  // namespace

PageTable::PageTable(Endpoint& endpoint, const RegionLayout& layout, const OwnedRegion& region)
    : endpoint_(endpoint), layout_(layout), region_(region), backed_end_(layout.pages) {}

Status PageTable::open() {
  const uint64_t used = region_.load(offsetof(Superblock, pages_used));
  if (used > layout_.page_count) return Status(Code::kCorrupt, "superblock: too many pages used");
  RDMACC_RETURN_IF_ERROR(back_until(used));
  pages_used_ = used;
  for (uint64_t index = 0; index < used;) {
    const PageWord page = word(index);
    if (!plausible(page, used - index)) {
      return Status(Code::kCorrupt, "page table: page " + std::to_string(index));
    }
    const uint64_t pages = is_run(page.kind()) ? page.value() : 1;
    for (uint64_t i = 1; i < pages; ++i) {
      if (word(index + i).kind() != PageKind::kRunTail) {
        return Status(Code::kCorrupt, "page table: run at page " + std::to_string(index));
      }
    }
    // A tail without its head belongs to a run whose allocation or return was cut short.
    if (page.kind() == PageKind::kRunTail) set_word(index, PageWord{});
    if (word(index).kind() == PageKind::kUnused) add_unused(index, 1);
    index += pages;
  }
  return Status();
}

PageWord PageTable::word(uint64_t index) const {
  CHECK(index < layout_.page_count);
  return PageWord{region_.load(layout_.page_word(index))};
}

void PageTable::set_word(uint64_t index, PageWord word) {
  CHECK(index < layout_.page_count);
  region_.store(layout_.page_word(index), word.bits);
}

Status PageTable::back_until(uint64_t page_end) {
  if (layout_.page(page_end) <= backed_end_) return Status();
  const uint64_t pages_end = layout_.page(layout_.page_count);
  const uint64_t end = std::min(round_up(layout_.page(page_end), kChunkBytes), pages_end);
  RDMACC_RETURN_IF_ERROR(endpoint_.back_region(backed_end_, end - backed_end_));
  backed_end_ = end;
  // The next ones are made ready while these are handed out; the more of them the larger a node has
  // grown, since it then grows faster.
  const uint64_t ahead = std::clamp((end - layout_.pages) / 8, kChunkBytes, kAheadBytesMax);
  endpoint_.expect_backing(end, std::min(round_up(ahead, kChunkBytes), pages_end - end));
  return Status();
}

Result<uint64_t> PageTable::take(PageKind kind, uint32_t unit_bytes) {
  CHECK(kind != PageKind::kUnused && !is_run(kind) && kind != PageKind::kRunTail);
  Result<uint64_t> first = take_contiguous(1);
  if (!first.ok()) return first;
  set_word(*first, PageWord::make(kind, unit_bytes));
  pages_used_ = std::max(pages_used_, *first + 1);
  region_.store(offsetof(Superblock, pages_used), pages_used_);
  return first;
}

Result<uint64_t> PageTable::take_run(PageKind kind, uint64_t pages) {
  CHECK(is_run(kind) && pages > 0);
  Result<uint64_t> first = take_contiguous(pages);
  if (!first.ok()) return first;
  for (uint64_t i = 1; i < pages; ++i) set_word(*first + i, PageWord::make(PageKind::kRunTail, 0));
  set_word(*first, PageWord::make(kind, pages));
  pages_used_ = std::max(pages_used_, *first + pages);
  region_.store(offsetof(Superblock, pages_used), pages_used_);
  return first;
}

void PageTable::give_back(uint64_t first) {
  const PageWord head = word(first);
  CHECK(head.kind() != PageKind::kUnused && head.kind() != PageKind::kRunTail);
  const uint64_t pages = is_run(head.kind()) ? head.value() : 1;
  for (uint64_t i = 0; i < pages; ++i) set_word(first + i, PageWord{});
  add_unused(first, pages);
}

Result<uint64_t> PageTable::take_contiguous(uint64_t pages) {
  const auto fits = [&](const auto& run) { return run.second >= pages; };
  const auto run = std::find_if(unused_.begin(), unused_.end(), fits);
  if (run != unused_.end()) {
    const uint64_t first = run->first, left = run->second - pages;
    unused_.erase(run);
    if (left > 0) unused_.emplace(first + pages, left);
    unused_count_ -= pages;
    return first;
  }
  if (pages > layout_.page_count - pages_used_) return Status(Code::kNoSpace, "no page left");
  RDMACC_RETURN_IF_ERROR(back_until(pages_used_ + pages));
  return pages_used_;
}

void PageTable::add_unused(uint64_t first, uint64_t pages) {
  unused_count_ += pages;
  auto next = unused_.lower_bound(first);
  if (next != unused_.end() && next->first == first + pages) {
    pages += next->second;
    next = unused_.erase(next);
  }
  if (next != unused_.begin()) {
    const auto before = std::prev(next);
    CHECK(before->first + before->second <= first);
    if (before->first + before->second == first) {
      before->second += pages;
      return;
    }
  }
  unused_.emplace(first, pages);
}

}  // namespace rdmacc
