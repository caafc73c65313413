#include "engine/txn/transaction/slot_walk.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

Status read_words(EngineContext& engine, NodeId node, uint64_t offset, uint64_t* words,
                  size_t count) {
  VerbCounters counters;
  DoorbellBatch batch(engine.worker.scheduler(), counters);
  batch.read(GlobalAddress::make(node, offset), words, count * sizeof(uint64_t));
  return batch.execute();
}

}  // namespace

Status SlotWalk::begin(EngineContext& engine, const CachedTable& table, NodeId node,
                       VerbArena& arena) {
  constexpr uint64_t kWordsAtOnce = 1024;
  *this = SlotWalk();
  first_page_ = engine.layout.page(0);
  slot_bytes_ = static_cast<uint32_t>(slot_bytes(table.record_size, table.history));
  CHECK(slot_bytes_ > 0 && slot_bytes_ <= kPageBytes);
  slots_per_page_ = static_cast<uint32_t>(kPageBytes / slot_bytes_);
  word_ = PageWord::make(PageKind::kSlot, slot_bytes_);
  auto* words = arena.allocate_array<uint64_t>(kWordsAtOnce);
  if (words == nullptr) return out_of_registered_memory();
  RDMACC_RETURN_IF_ERROR(read_words(engine, node, offsetof(Superblock, pages_used), words, 1));
  const uint64_t used = std::min(words[0], engine.layout.page_count);
  for (uint64_t first = 0; first < used; first += kWordsAtOnce) {
    const uint64_t count = std::min(kWordsAtOnce, used - first);
    RDMACC_RETURN_IF_ERROR(read_words(engine, node, engine.layout.page_word(first), words, count));
    for (uint64_t i = 0; i < count; i++) {
      if (words[i] == word_.bits) pages_.push_back(static_cast<uint32_t>(first + i));
    }
  }
  end_page_ = pages_.size();
  return Status();
}

Status SlotWalk::count_rows(EngineContext& engine, const CachedTable& table, NodeId node,
                            VerbArena& arena, uint64_t& rows) {
  auto* entry = arena.allocate_array<DirectoryEntry>(1);
  if (entry == nullptr) return out_of_registered_memory();
  const uint64_t offset = engine.layout.directory_entry(table.id);
  RDMACC_RETURN_IF_ERROR(read_words(engine, node, offset, reinterpret_cast<uint64_t*>(entry),
                                    sizeof(DirectoryEntry) / sizeof(uint64_t)));
  rows = entry->id == table.id ? entry->rows : 0;
  return Status();
}

std::optional<uint64_t> SlotWalk::take_page(uint64_t index) {
  const auto found = std::lower_bound(pages_.begin(), pages_.end(), index);
  at_ = {static_cast<size_t>(found - pages_.begin()), 0};
  end_page_ = at_.page;
  if (found == pages_.end()) return std::nullopt;
  end_page_++;
  return *found;
}

SlotBlock SlotWalk::next() {
  CHECK(!ended());
  SlotBlock block;
  block.page = pages_[at_.page];
  block.word = word_;
  block.slot_bytes = slot_bytes_;
  block.first = first_page_ + block.page * kPageBytes + uint64_t{at_.slot} * slot_bytes_;
  block.slots = std::min(std::max(kBlockBytes / slot_bytes_, 1u), slots_per_page_ - at_.slot);
  at_.slot += block.slots;
  if (at_.slot == slots_per_page_) at_ = {at_.page + 1, 0};
  return block;
}

}  // namespace rdmacc
