// Pages that become something else, or may.
#include <algorithm>

#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/arena.h"

namespace rdmacc {

// One page with free units stays with each size, so that a page does not go back and forth.
bool Arena::give_back_page(uint64_t index) {
  const Page& page = pages_[index];
  std::vector<uint64_t>& others = size_class(page.kind, page.unit_bytes).pages;
  if (others.empty() || (others.size() == 1 && others[0] == index)) return false;
  std::erase(others, index);
  give_back_unlisted(index);
  return true;
}

void Arena::give_back_unlisted(uint64_t index) {
  const Page& page = pages_[index];
  CHECK(page.free == page.units && !holds_headers(page.kind));
  // Free blocks keep their size, by which they are known to have been handed out.
  for (uint32_t unit = 0; page.kind == PageKind::kOverflow && unit < page.units; ++unit) {
    region_.zero(layout_.page(index) + uint64_t{unit} * page.unit_bytes, sizeof(OverflowHeader));
  }
  page_table_.give_back(index);
  load_page(index);
}

// Those that give_back_page() has left with their size.
bool Arena::give_back_spare_pages() {
  bool any = false;
  for (SizeClass& units : classes_) {
    if (holds_headers(units.kind)) continue;
    any |= std::erase_if(units.pages, [this](uint64_t index) {
             if (pages_[index].free != pages_[index].units) return false;
             give_back_unlisted(index);
             return true;
           }) > 0;
  }
  return any;
}

// A page of headers that is handed out from is no empty one any more.
void Arena::leave_empty(Page& page) {
  if (page.refused) {
    page.refused = false;
  } else {
    --empty_pages_;
  }
}

void Arena::withdraw_empty_pages() {
  CHECK(withdrawn_.empty());
  for (SizeClass& units : classes_) {
    if (!holds_headers(units.kind)) continue;
    std::erase_if(units.pages, [&](uint64_t index) {
      if (pages_[index].free != pages_[index].units || pages_[index].refused) return false;
      withdrawn_.push_back(index);
      return true;
    });
  }
  CHECK(withdrawn_.size() == empty_pages_);
  empty_pages_ = 0;
}

void Arena::restore(uint64_t index) {
  const Page& page = pages_[index];
  CHECK(holds_headers(page.kind) && page.free == page.units && !page.refused);
  ++empty_pages_;
  size_class(page.kind, page.unit_bytes).pages.push_back(index);
}

void Arena::restore_withdrawn() {
  for (const uint64_t index : std::exchange(withdrawn_, {})) restore(index);
}

// A withdrawn page is still one of its size, for which nothing else may be left.
bool Arena::restore_one(PageKind kind, uint32_t unit_bytes) {
  const auto at = std::find_if(withdrawn_.begin(), withdrawn_.end(), [&](uint64_t index) {
    return pages_[index].kind == kind && pages_[index].unit_bytes == unit_bytes;
  });
  if (at == withdrawn_.end()) return false;
  const uint64_t index = *at;
  withdrawn_.erase(at);
  restore(index);
  return true;
}

// The one with the smallest units that are larger.
bool Arena::restore_one_above(PageKind kind, uint32_t unit_bytes) {
  uint32_t smallest = 0;
  for (const uint64_t index : withdrawn_) {
    const Page& page = pages_[index];
    if (page.kind != kind || page.unit_bytes <= unit_bytes) continue;
    if (smallest == 0 || page.unit_bytes < smallest) smallest = page.unit_bytes;
  }
  return smallest != 0 && restore_one(kind, smallest);
}

// A header there may be locked: by a transaction with a stale address, or by one that died. Nor may
// incarnations that go on from what is there run out, whatever peers have written.
bool Arena::may_become_another(uint64_t index) const {
  const Page& page = pages_[index];
  for (uint32_t unit = 0; unit < page.units; ++unit) {
    const Header header = region_.header(layout_.page(index) + uint64_t{unit} * page.unit_bytes);
    if (header.lock != 0 || header.waiter != 0 || sundial_locked(header.sundial)) return false;
    if (header.incarnation > kIncarnationsMax) return false;
  }
  return true;
}

void Arena::recycle_withdrawn() {
  for (const uint64_t index : std::exchange(withdrawn_, {})) {
    if (may_become_another(index)) {
      recycle(index);
    } else {
      refuse(index);
    }
  }
}

// It serves its own size until there is no lock any more: another era would not help it.
void Arena::refuse(uint64_t index) {
  Page& page = pages_[index];
  page.refused = true;
  size_class(page.kind, page.unit_bytes).pages.push_back(index);
  refused_.push_back(index);
}

void Arena::look_at_refused() {
  std::erase_if(refused_, [this](uint64_t index) {
    Page& page = pages_[index];
    if (!page.refused) return true;  // it has been handed out from since
    if (!may_become_another(index)) return false;
    page.refused = false;
    ++empty_pages_;
    return true;
  });
}

void Arena::recycle(uint64_t index) {
  const Page& page = pages_[index];
  CHECK(holds_headers(page.kind) && page.free == page.units);
  const uint64_t used = offsetof(Superblock, incarnations_used);
  for (uint32_t unit = 0; unit < page.units; ++unit) {
    const uint64_t header = layout_.page(index) + uint64_t{unit} * page.unit_bytes;
    const uint64_t incarnation = region_.load(header + kOffsetOfIdentity) >> 32;
    if (incarnation > region_.load(used)) region_.store(used, incarnation);
  }
  region_.zero(layout_.page(index), kPageBytes);
  page_table_.give_back(index);
  load_page(index);
}

// An incarnation is never seen twice at an address, whatever was there in between.
void Arena::continue_incarnations(uint64_t index) {
  const auto used = static_cast<uint32_t>(region_.load(offsetof(Superblock, incarnations_used)));
  const Page& page = pages_[index];
  for (uint32_t unit = 0; used != 0 && unit < page.units; ++unit) {
    const uint64_t header = layout_.page(index) + uint64_t{unit} * page.unit_bytes;
    region_.store(header + kOffsetOfIdentity, pack_words(kNoTable, used));
  }
}

}  // namespace rdmacc
