#include <algorithm>

#include "engine/storage/owner/slot_blocks.h"
#include "engine/storage/owner/storage_node.h"

// Handing out slots and overflow blocks, for all records of a transaction on this node at once:
// all or nothing.

namespace rdmacc {

namespace {
// A free slot may be locked for a moment by a transaction with a stale address; another is taken
// then.
constexpr int kLockTries = 8;
// Reclamation rounds before memory is said to be used up.
constexpr int kReclaimTries = 3;
constexpr uint64_t kReclaimPauseUs = 20;
// What a request waits at most for the memory of tables that are being dropped.
constexpr uint64_t kDropUsMax = 10'000'000;
constexpr size_t kLocksPerBatch = 1024;
// Blocks of old versions for one worker at a time.
constexpr uint32_t kReservedWhenScarce = 16;

Status no_such_table(TableId id) {
  return Status(Code::kNotFound, "table " + std::to_string(id) + " does not exist");
}
}  // namespace

Status StorageNode::handle_allocate(WorkerId, Bytes bytes, Reply& reply) {
  AllocateRequest request;
  if (!request.parse(bytes) || request.ctts == 0) {
    return Status(Code::kInvalidArgument, "allocate: malformed request");
  }
  for (const AllocateItem& item : request.items) {
    if (item.overflow_bytes > kOverflowBytesMax) {
      return Status(Code::kTooLarge, "allocate: overflow block too long");
    }
  }
  std::vector<Allocation> taken;
  Status status = allocate(request, taken, reply);
  for (int i = 0; i < kReclaimTries && status.code() == Code::kNoSpace; ++i) {
    // What workers keep for inserts to come is less urgent than this one.
    if (reserved_slots_.take_back(ReservedSlots::OfTables::kAll) == 0) break;
    taken.clear();
    status = allocate(request, taken, reply);
  }
  if (status.code() == Code::kNoSpace && !request.items.empty()) {
    note_change(index_.observer(), StructureChange::kFull, request.items.front().table);
  }
  return status;
}

// The worker keeps them: no transaction has the tag.
Status StorageNode::handle_reserve_slots(WorkerId from, Bytes bytes, Reply& reply) {
  ReserveRequest reserve;
  const bool sound = reserve.parse(bytes) && locked_exclusively(reserve.tag) &&
                     static_cast<WorkerId>(reserve.tag) == from;
  if (!sound) return Status(Code::kInvalidArgument, "reserve: malformed request");
  AllocateRequest request;
  request.ctts = reserve.tag;
  AllocateItem item;
  item.table = reserve.table;
  request.items.assign(reserve.count, item);
  const uint32_t incarnation = worker_.endpoint().incarnation_of(from);
  std::vector<Allocation> taken;
  RDMACC_RETURN_IF_ERROR(allocate(request, taken, reply));
  std::vector<uint64_t> slots;
  for (const Allocation& each : taken) slots.push_back(each.slot);
  reserved_slots_.add(slots, reserve.tag, incarnation);
  return Status();
}

Status StorageNode::allocate(const AllocateRequest& request, std::vector<Allocation>& taken,
                             Reply& reply) {
  Status status = allocate_all(request, taken);
  if (status.ok()) status = hand_out(request, taken);
  if (!status.ok()) {
    undo(request.ctts, taken);
    return status;
  }
  std::vector<AllocateReplyItem> items;
  for (const Allocation& each : taken) {
    const Header header = each.slot == 0 ? Header{} : region_.header(each.slot);
    items.push_back({each.slot, header.incarnation, std::max(header.wts, header.rts),
                     header.sundial, each.block});
  }
  write_allocate_reply(items, reply);
  return Status();
}

Status StorageNode::handle_reserve_blocks(WorkerId from, Bytes bytes, Reply& reply) {
  MessageReader in(bytes);
  const uint32_t block_bytes = in.u32(), count = in.u32();
  if (!in.at_end() || block_bytes > kKeptBlockBytesMax || count > kReservedBlocksMax) {
    return Status(Code::kInvalidArgument, "reserve: malformed request");
  }
  std::vector<uint64_t> blocks;
  RDMACC_RETURN_IF_ERROR(reserve_blocks(from, block_bytes, count, blocks));
  MessageWriter out(reply);
  for (const uint64_t block : blocks) out.u64(block);
  return Status();
}

// The tag names the worker that keeps them, and no transaction. Does not yield.
Status StorageNode::reserve_blocks(WorkerId worker, uint32_t block_bytes, uint32_t count,
                                   std::vector<uint64_t>& blocks) {
  CHECK(block_bytes <= kKeptBlockBytesMax && blocks.empty());
  CHECK(count <= kReservedBlocksMax);
  const uint32_t unit_bytes = overflow_unit_bytes(block_bytes);
  const uint64_t tag = kept_tag(worker_.endpoint().now_us(), worker);
  const uint32_t most = versions_.scarce() ? std::min(count, kReservedWhenScarce) : count;
  for (uint32_t i = 0; i < most; ++i) {
    Result<uint64_t> block = arena_.allocate(PageKind::kOverflow, unit_bytes);
    if (!block.ok()) return i > 0 ? Status() : block.status();
    const uint64_t room = arena_.unit_bytes(*block) - sizeof(OverflowHeader);
    region_.store(*block + offsetof(OverflowHeader, capacity), room);
    region_.store(*block + offsetof(OverflowHeader, owner_ctts), tag);
    versions_.reserve(*block, worker);
    blocks.push_back(*block);
  }
  return Status();
}

Status StorageNode::allocate_all(const AllocateRequest& request, std::vector<Allocation>& taken) {
  Status status = take_units(request, taken);
  for (int i = 0; i < kReclaimTries && status.code() == Code::kNoSpace; ++i) {
    if (!reclaim_some()) break;
    status = take_units(request, taken);
  }
  RDMACC_RETURN_IF_ERROR(status);
  return lock_slots(request.ctts, taken);
}

// For a request that finds no memory: one step towards what is on its way back, that of dropped
// tables included. False: there is none. Yields.
bool StorageNode::reclaim_some() {
  const uint64_t deadline_us = worker_.endpoint().now_us() + kDropUsMax;
  while (drops_under_way_ > 0 && worker_.endpoint().now_us() < deadline_us) {
    worker_.scheduler().sleep_for(kReclaimPauseUs);
  }
  if (!reclaimer_.pending()) return false;
  if (reclaimer_.busy()) worker_.scheduler().sleep_for(kReclaimPauseUs);
  reclaimer_.advance();
  return true;
}

// On kNoSpace nothing is taken. Does not yield.
Status StorageNode::take_units(const AllocateRequest& request, std::vector<Allocation>& taken) {
  CHECK(taken.empty());
  Status status;
  for (const AllocateItem& item : request.items) {
    Allocation& each = taken.emplace_back();
    if (item.want_slot) {
      const DirectoryEntry* table = directory_.live(item.table);
      if (table == nullptr) {
        status = no_such_table(item.table);
        break;
      }
      each.record_size = table->record_size;
      each.history = table->history;
      const Result<uint64_t> slot =
          arena_.allocate(PageKind::kSlot, slot_bytes(table->record_size, table->history));
      status = slot.status();
      if (!slot.ok()) break;
      each.slot = slot.value();
      region_.prefetch_header(each.slot);
      DCHECK(layout_.holds_header(each.slot));
    }
    if (item.overflow_bytes > 0) {
      const uint64_t bytes = overflow_unit_bytes(item.overflow_bytes);
      const Result<uint64_t> block = arena_.allocate(PageKind::kOverflow, bytes);
      status = block.status();
      if (!block.ok()) break;
      each.block = block.value();
      DCHECK(each.block % 8 == 0);
    }
  }
  if (status.ok()) return status;
  for (const Allocation& each : taken) {
    if (each.slot != 0) arena_.give_back(each.slot);
    if (each.block != 0) arena_.give_back(each.block);
  }
  taken.clear();
  return status;
}

// The slots are free, but their lock words may be changed by any process. On failure the slots that
// could not be locked are taken out of `taken` and retired.
Status StorageNode::lock_slots(uint64_t ctts, std::vector<Allocation>& taken) {
  std::vector<Allocation*> unlocked;
  for (Allocation& each : taken) {
    if (each.slot != 0) unlocked.push_back(&each);
  }
  Status status;
  for (int attempt = 0; attempt < kLockTries && !unlocked.empty() && status.ok(); ++attempt) {
    std::vector<Allocation*> failed;
    for (size_t first = 0; first < unlocked.size(); first += kLocksPerBatch) {
      const size_t count = std::min(kLocksPerBatch, unlocked.size() - first);
      VerbArena arena(worker_.pool());
      auto* seen = arena.allocate_array<uint64_t>(count);
      DoorbellBatch batch(worker_.scheduler(), worker_.counters());
      for (size_t i = 0; seen != nullptr && i < count; ++i) {
        batch.compare_swap(region_.address(unlocked[first + i]->slot + kOffsetOfLock), 0, ctts,
                           &seen[i]);
      }
      const bool done = seen != nullptr && batch.execute().ok();
      if (!done) status = out_of_registered_memory();
      for (size_t i = 0; i < count; ++i) {
        if (!done || seen[i] != 0) failed.push_back(unlocked[first + i]);
      }
    }
    for (Allocation* each : failed) {
      const uint64_t bytes = arena_.unit_bytes(each->slot);
      arena_.retire(each->slot);  // or a resolution has discarded it already
      each->slot = 0;
      if (!status.ok()) continue;
      const Result<uint64_t> slot = arena_.allocate(PageKind::kSlot, bytes);
      status = slot.status();
      if (slot.ok()) each->slot = slot.value();
    }
    unlocked = std::move(failed);
  }
  for (Allocation* each : unlocked) {
    if (status.ok()) status = Status(Code::kNoSpace, "no unlocked slot");
    if (each->slot != 0) arena_.retire(each->slot);
    each->slot = 0;
  }
  return status;
}

Status StorageNode::hand_out(const AllocateRequest& request, const std::vector<Allocation>& taken) {
  CHECK(taken.size() == request.items.size());
  // We yielded: a table may have been dropped.
  for (const AllocateItem& item : request.items) {
    if (item.want_slot && directory_.live(item.table) == nullptr) return no_such_table(item.table);
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    const Allocation& each = taken[i];
    const AllocateItem& item = request.items[i];
    if (each.slot != 0) {
      CHECK(item.want_slot && item.table != kNoTable);
      region_.bump_incarnation(each.slot, item.table);
      region_.store(each.slot, item.key_hash);
      region_.store(each.slot + kOffsetOfLength, 0);
      if (each.history > 0) {
        region_.store(each.slot + versions_reference_place(each.record_size), kNoOlderVersion);
      }
      directory_.add_rows(item.table, 1);
    }
    if (each.block != 0) {
      CHECK(arena_.unit_bytes(each.block) >= sizeof(OverflowHeader) + item.overflow_bytes);
      const uint64_t room = arena_.unit_bytes(each.block) - sizeof(OverflowHeader);
      region_.store(each.block + offsetof(OverflowHeader, capacity), room);
      region_.store(each.block + offsetof(OverflowHeader, owner_ctts), request.ctts);
    }
  }
  return Status();
}

void StorageNode::undo(uint64_t ctts, const std::vector<Allocation>& taken) {
  std::vector<uint64_t> locked;
  for (const Allocation& each : taken) {
    if (each.slot != 0) {
      region_.bump_incarnation(each.slot, kNoTable);
      arena_.retire(each.slot);
      locked.push_back(each.slot);
    }
    if (each.block != 0) arena_.retire(each.block);
  }
  unlock_slots(ctts, locked);
}

// By verbs to itself: any process may change lock words. Only what is still locked by `ctts`.
void StorageNode::unlock_slots(uint64_t ctts, const std::vector<uint64_t>& slots) {
  if (slots.empty() || ctts == 0) return;
  VerbArena arena(worker_.pool());
  uint64_t* seen = nullptr;
  if (worker_.scheduler().in_coroutine()) seen = arena.allocate_array<uint64_t>(1);
  DoorbellBatch batch(worker_.scheduler(), worker_.counters());
  for (const uint64_t slot : slots) {
    if (seen != nullptr) {
      batch.compare_swap(region_.address(slot + kOffsetOfLock), ctts, 0, seen);
    } else if (region_.lock_of(slot) == ctts) {
      region_.store(slot + kOffsetOfLock, 0);
    }
  }
  if (!batch.empty()) static_cast<void>(batch.execute());
}

}  // namespace rdmacc
