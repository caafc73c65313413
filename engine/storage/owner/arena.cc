#include "engine/storage/owner/arena.h"

#include <algorithm>
#include <bit>

#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {

namespace {

constexpr uint64_t kSmallArrayBytesMax = kPageBytes / 2;

// Are the units of a page what is asked for?
bool serves(PageKind page, PageKind kind) {
  return page == kind || (kind == PageKind::kOverflow && page == PageKind::kOverflowRun);
}

bool bit_of(const std::vector<uint64_t>& words, uint32_t i) {
  return (words[i / 64] >> (i % 64) & 1) != 0;
}
void set_bit(std::vector<uint64_t>& words, uint32_t i) { words[i / 64] |= 1ull << (i % 64); }
void clear_bit(std::vector<uint64_t>& words, uint32_t i) { words[i / 64] &= ~(1ull << (i % 64)); }

}  // namespace

Arena::Arena(Endpoint& endpoint, const RegionLayout& layout, const OwnedRegion& region)
    : layout_(layout), region_(region), page_table_(endpoint, layout, region) {}

Status Arena::open() {
  CHECK(pages_.empty());
  RDMACC_RETURN_IF_ERROR(page_table_.open());
  pages_.resize(page_table_.pages_used());
  for (uint64_t index = 0; index < pages_.size(); ++index) load_page(index);
  return Status();
}

void Arena::load_page(uint64_t index) {
  const PageWord word = page_table_.word(index);
  Page page;
  page.kind = word.kind();
  if (is_run(page.kind)) {
    page.units = 1;
    page.unit_bytes = static_cast<uint32_t>(std::min<uint64_t>(word.value() * kPageBytes, ~0u));
  } else if (page.kind != PageKind::kUnused && page.kind != PageKind::kRunTail) {
    page.unit_bytes = static_cast<uint32_t>(word.value());
    page.units = static_cast<uint32_t>(kPageBytes / page.unit_bytes);
  }
  page.free = page.units;
  page.taken.resize((page.units + 63) / 64);
  page.retired.resize(page.taken.size());
  pages_[index] = std::move(page);
}

bool Arena::place_of(uint64_t offset, Place* place) const {
  if (offset < layout_.pages) return false;
  const uint64_t index = (offset - layout_.pages) / kPageBytes;
  if (index >= pages_.size()) return false;
  const Page& page = pages_[index];
  if (page.units == 0) return false;
  const auto within = static_cast<uint32_t>((offset - layout_.pages) % kPageBytes);
  const uint32_t unit = within / page.unit_bytes;
  if (within % page.unit_bytes != 0 || unit >= page.units) return false;
  *place = Place{index, unit};
  return true;
}

bool Arena::is_unit(PageKind kind, uint64_t offset) const {
  Place place;
  return place_of(offset, &place) && serves(pages_[place.page].kind, kind);
}

bool Arena::in_use(PageKind kind, uint64_t offset) const {
  Place place;
  if (!place_of(offset, &place)) return false;
  const Page& page = pages_[place.page];
  return serves(page.kind, kind) && bit_of(page.taken, place.unit) &&
         !bit_of(page.retired, place.unit);
}

uint64_t Arena::unit_bytes(uint64_t offset) const {
  Place place;
  CHECK(place_of(offset, &place));
  const Page& page = pages_[place.page];
  if (is_run(page.kind)) return page_table_.word(place.page).value() * kPageBytes;
  return page.unit_bytes;
}

void Arena::for_each_unit(uint64_t index, PageKind kind,
                          const std::function<void(uint64_t, bool)>& visit) const {
  CHECK(index < pages_.size());
  if (!serves(pages_[index].kind, kind)) return;
  const uint32_t units = pages_[index].units, bytes = pages_[index].unit_bytes;
  for (uint32_t i = 0; i < units; ++i) {
    const Page& page = pages_[index];
    visit(layout_.page(index) + uint64_t{i} * bytes,
          bit_of(page.taken, i) && !bit_of(page.retired, i));
  }
}

bool Arena::mark_used(PageKind kind, uint64_t offset) {
  Place place;
  if (!place_of(offset, &place)) return false;
  Page& page = pages_[place.page];
  if (!serves(page.kind, kind) || bit_of(page.taken, place.unit)) return false;
  set_bit(page.taken, place.unit);
  --page.free;
  used_bytes_ += unit_bytes(offset);
  return true;
}

bool Arena::was_handed_out(PageKind kind, uint64_t offset) const {
  switch (kind) {
    case PageKind::kSlot:
    case PageKind::kGroup:
      return (region_.load(offset + kOffsetOfIdentity) >> 32) != 0;
    case PageKind::kOverflow:
      return region_.load(offset + offsetof(OverflowHeader, capacity)) != 0;
    default:
      return true;
  }
}

void Arena::settle() {
  for (uint64_t index = 0; index < pages_.size(); ++index) {
    for (uint32_t unit = 0; unit < pages_[index].units; ++unit) {
      const uint64_t offset = layout_.page(index) + uint64_t{unit} * pages_[index].unit_bytes;
      const PageKind kind = pages_[index].kind;
      if (bit_of(pages_[index].taken, unit) || !was_handed_out(kind, offset)) continue;
      CHECK(mark_used(kind, offset));
      if (holds_headers(kind)) {
        region_.bump_incarnation(offset, kNoTable);
      }
      CHECK(retire(offset));
    }
    const Page& page = pages_[index];
    if (holds_headers(page.kind) && page.free == page.units) ++empty_pages_;
    if (page.free > 0 && !is_run(page.kind)) {
      size_class(page.kind, page.unit_bytes).pages.push_back(index);
    }
  }
}

Arena::SizeClass& Arena::size_class(PageKind kind, uint32_t unit_bytes) {
  for (SizeClass& units : classes_) {
    if (units.kind == kind && units.unit_bytes == unit_bytes) return units;
  }
  return classes_.emplace_back(SizeClass{kind, unit_bytes, {}});
}

Status Arena::no_space() const {
  const uint64_t capacity = layout_.page_count * kPageBytes;
  return Status(Code::kNoSpace, "node " + std::to_string(region_.node()) + ": memory is used up (" +
                                    std::to_string(used_bytes_) + " of " +
                                    std::to_string(capacity) + " bytes for rows and indexes, of " +
                                    std::to_string(layout_.region_bytes) + " in all)");
}

Result<uint64_t> Arena::allocate(PageKind kind, uint64_t bytes) {
  CHECK(kind != PageKind::kUnused && kind != PageKind::kRunTail && bytes > 0);
  if (kind == PageKind::kArray) {
    if (bytes > kSmallArrayBytesMax) return allocate_run(PageKind::kRun, bytes);
    bytes = std::max<uint64_t>(64, std::bit_ceil(bytes));
  }
  if (kind == PageKind::kOverflow && bytes > kPageBytes) {
    return allocate_run(PageKind::kOverflowRun, bytes);
  }
  CHECK(bytes % 64 == 0 && bytes <= kPageBytes);
  Result<SizeClass*> units = class_with_room(kind, static_cast<uint32_t>(bytes));
  if (!units.ok()) return units.status();
  const bool larger = (*units)->unit_bytes != bytes;
  if (larger && kind == PageKind::kSlot) region_.store(offsetof(Superblock, slots_in_larger), 1);
  return take_unit(**units);
}

// Where no page is left, a larger unit will do for a slot or a block.
Result<Arena::SizeClass*> Arena::class_with_room(PageKind kind, uint32_t unit_bytes) {
  if (SizeClass& exact = size_class(kind, unit_bytes); !exact.pages.empty()) return &exact;
  Result<uint64_t> index = page_table_.take(kind, unit_bytes);
  if (index.status().code() == Code::kNoSpace && give_back_spare_pages()) {
    index = page_table_.take(kind, unit_bytes);
  }
  if (index.ok()) {
    if (index.value() >= pages_.size()) pages_.resize(index.value() + 1);
    load_page(index.value());
    if (holds_headers(kind)) {
      continue_incarnations(index.value());
      ++empty_pages_;
    }
    SizeClass& units = size_class(kind, unit_bytes);
    units.pages.push_back(index.value());
    return &units;
  }
  if (index.status().code() != Code::kNoSpace) return index.status();
  if (restore_one(kind, unit_bytes)) return &size_class(kind, unit_bytes);
  const bool any_size = kind == PageKind::kSlot || kind == PageKind::kOverflow;
  if (!any_size) return no_space();
  SizeClass* larger = smallest_above(kind, unit_bytes);
  if (larger == nullptr && restore_one_above(kind, unit_bytes)) {
    larger = smallest_above(kind, unit_bytes);
  }
  if (larger == nullptr) return no_space();
  return larger;
}

// Of those that have room; nullptr: there is none.
Arena::SizeClass* Arena::smallest_above(PageKind kind, uint32_t unit_bytes) {
  SizeClass* larger = nullptr;
  for (SizeClass& units : classes_) {
    const bool serves = units.kind == kind && units.unit_bytes > unit_bytes && !units.pages.empty();
    if (serves && (larger == nullptr || units.unit_bytes < larger->unit_bytes)) larger = &units;
  }
  return larger;
}

Result<uint64_t> Arena::allocate_run(PageKind kind, uint64_t bytes) {
  const uint64_t count = round_up(bytes, kPageBytes) / kPageBytes;
  Result<uint64_t> first = page_table_.take_run(kind, count);
  if (first.status().code() == Code::kNoSpace && give_back_spare_pages()) {
    first = page_table_.take_run(kind, count);
  }
  if (!first.ok()) return first.status().code() == Code::kNoSpace ? no_space() : first.status();
  if (first.value() + count > pages_.size()) pages_.resize(first.value() + count);
  for (uint64_t i = 0; i < count; ++i) load_page(first.value() + i);
  const uint64_t offset = layout_.page(first.value());
  CHECK(mark_used(kind, offset));
  return offset;
}

uint64_t Arena::take_unit(SizeClass& units) {
  const uint64_t index = units.pages.back();
  Page& page = pages_[index];
  CHECK(page.free > 0 && page.kind == units.kind);
  uint32_t word = page.first_free_word;
  while (~page.taken[word] == 0) ++word;
  page.first_free_word = word;
  const uint32_t unit = word * 64 + static_cast<uint32_t>(std::countr_one(page.taken[word]));
  CHECK(unit < page.units);
  set_bit(page.taken, unit);
  if (holds_headers(page.kind) && page.free == page.units) leave_empty(page);
  if (--page.free == 0) units.pages.pop_back();
  used_bytes_ += page.unit_bytes;
  return layout_.page(index) + uint64_t{unit} * page.unit_bytes;
}

bool Arena::retire(uint64_t offset) {
  Place place;
  if (!place_of(offset, &place)) return false;
  Page& page = pages_[place.page];
  if (!bit_of(page.taken, place.unit) || bit_of(page.retired, place.unit)) return false;
  set_bit(page.retired, place.unit);
  // A block without owner is found to be free when the node is opened again.
  if (serves(page.kind, PageKind::kOverflow)) region_.store(offset, 0);
  retired_.push_back(offset);
  return true;
}

void Arena::give_back(uint64_t offset) {
  Place place;
  CHECK(place_of(offset, &place));
  CHECK(bit_of(pages_[place.page].taken, place.unit));
  CHECK(!bit_of(pages_[place.page].retired, place.unit));
  used_bytes_ -= unit_bytes(offset);
  free_unit(place);
}

std::vector<uint64_t> Arena::take_retired() { return std::exchange(retired_, {}); }

void Arena::put_back_retired(std::vector<uint64_t> offsets) {
  retired_.insert(retired_.end(), offsets.begin(), offsets.end());
}

void Arena::reclaim(std::span<const uint64_t> offsets) {
  for (const uint64_t offset : offsets) {
    Place place;
    CHECK(place_of(offset, &place));
    CHECK(bit_of(pages_[place.page].retired, place.unit));
    const uint64_t bytes = unit_bytes(offset);
    wipe(pages_[place.page].kind, offset, bytes);
    used_bytes_ -= bytes;
    free_unit(place);
  }
}

// The rows of the last owner must not show through in the next one's memory.
void Arena::wipe(PageKind kind, uint64_t offset, uint64_t bytes) {
  uint64_t keep = 0;
  if (holds_headers(kind)) keep = sizeof(Header);
  if (kind == PageKind::kOverflow) keep = sizeof(OverflowHeader);
  region_.zero(offset + keep, bytes - keep);
  if (keep == sizeof(Header)) region_.store(offset + kOffsetOfLength, 0);
}

void Arena::free_unit(const Place& place) {
  Page& page = pages_[place.page];
  if (is_run(page.kind)) {
    const uint64_t count = page_table_.word(place.page).value();
    page_table_.give_back(place.page);
    for (uint64_t i = 0; i < count; ++i) load_page(place.page + i);
    return;
  }
  clear_bit(page.taken, place.unit);
  clear_bit(page.retired, place.unit);
  page.first_free_word = std::min(page.first_free_word, place.unit / 64);
  if (++page.free == page.units) {
    if (holds_headers(page.kind)) {
      ++empty_pages_;
    } else if (give_back_page(place.page)) {
      return;
    }
  }
  if (page.free == 1) size_class(page.kind, page.unit_bytes).pages.push_back(place.page);
}

}  // namespace rdmacc
