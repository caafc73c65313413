#include "engine/txn/transaction/slot_walk.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

Status read(EngineContext& engine, NodeId node, uint64_t offset, void* local, size_t bytes) {
  DoorbellBatch batch(engine.worker.scheduler(), engine.worker.counters());
  batch.read(GlobalAddress::make(node, offset), local, bytes);
  return batch.execute();
}

}  // namespace

Status SlotWalk::begin(EngineContext& engine, const CachedTable& table, NodeId node,
                       VerbArena& arena) {
  constexpr uint64_t kWordsAtOnce = 1024;
  *this = SlotWalk();
  first_page_ = engine.layout.page(0);
  const uint64_t least = slot_bytes(table.record_size, table.history);
  CHECK(least > 0 && least <= kPageBytes);
  auto* words = arena.allocate_array<uint64_t>(kWordsAtOnce);
  if (words == nullptr) return out_of_registered_memory();
  constexpr size_t kWord = sizeof(uint64_t);
  const uint64_t larger = offsetof(Superblock, slots_in_larger);
  RDMACC_RETURN_IF_ERROR(read(engine, node, larger, words, kWord));
  const uint64_t most = words[0] != 0 ? kPageBytes : least;
  RDMACC_RETURN_IF_ERROR(read(engine, node, offsetof(Superblock, pages_used), words, kWord));
  const uint64_t used = std::min(words[0], engine.layout.page_count);
  for (uint64_t first = 0; first < used; first += kWordsAtOnce) {
    const uint64_t count = std::min(kWordsAtOnce, used - first);
    const uint64_t from = engine.layout.page_word(first);
    RDMACC_RETURN_IF_ERROR(read(engine, node, from, words, count * kWord));
    for (uint64_t i = 0; i < count; i++) add_page(first + i, PageWord{words[i]}, least, most);
  }
  end_page_ = pages_.size();
  return Status();
}

void SlotWalk::add_page(uint64_t index, PageWord word, uint64_t least, uint64_t most) {
  if (word.kind() != PageKind::kSlot || word.value() < least || word.value() > most) return;
  pages_.push_back({static_cast<uint32_t>(index), static_cast<uint32_t>(word.value())});
  slots_ += pages_.back().slots();
}

Status SlotWalk::count_rows(EngineContext& engine, TableId table, NodeId node, VerbArena& arena,
                            uint64_t& rows) {
  auto* entry = arena.allocate_array<DirectoryEntry>(1);
  if (entry == nullptr) return out_of_registered_memory();
  const uint64_t from = engine.layout.directory_entry(table);
  RDMACC_RETURN_IF_ERROR(read(engine, node, from, entry, sizeof(*entry)));
  rows = entry->id == table ? entry->rows : 0;
  return Status();
}

size_t SlotWalk::place_of(uint64_t index) const {
  const auto found = std::lower_bound(pages_.begin(), pages_.end(), index,
                                      [](const Page& page, uint64_t i) { return page.index < i; });
  return static_cast<size_t>(found - pages_.begin());
}

std::optional<uint64_t> SlotWalk::page_from(uint64_t index) const {
  const size_t place = place_of(index);
  if (place == pages_.size()) return std::nullopt;
  return pages_[place].index;
}

void SlotWalk::go_to_page(uint64_t index) {
  at_ = {place_of(index), 0};
  CHECK(at_.page < pages_.size() && pages_[at_.page].index == index);
  end_page_ = at_.page + 1;
}

SlotBlock SlotWalk::next() {
  CHECK(!ended());
  const Page& page = pages_[at_.page];
  SlotBlock block;
  block.page = page.index;
  block.word = PageWord::make(PageKind::kSlot, page.slot_bytes);
  block.slot_bytes = page.slot_bytes;
  block.first = first_page_ + block.page * kPageBytes + uint64_t{at_.slot} * page.slot_bytes;
  block.slots = std::min(std::max(kBlockBytes / page.slot_bytes, 1u), page.slots() - at_.slot);
  at_.slot += block.slots;
  if (at_.slot == page.slots()) at_ = {at_.page + 1, 0};
  return block;
}

}  // namespace rdmacc
