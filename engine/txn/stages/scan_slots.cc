#include "engine/txn/stages/scan_slots.h"

#include "engine/txn/driver/in_place_rounds.h"
#include "engine/txn/stages/scan_entries.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr int kSlotScanAttemptsMax = 200;
constexpr uint64_t kSlotsAhead = 8;  // that are on their way to the cache

bool is_row(const Header& seen, TableId table, uint64_t from_bits) {
  return seen.table == table && (seen.flags & (kFlagLive | kFlagGap)) == kFlagLive &&
         !is_before(seen.key_hash, from_bits);
}

class SlotScan {
 public:
  SlotScan(StageContext& context, ScanWork& work, const CachedTable& table)
      : context_(context), work_(work), entries_(context, work, table) {}

  Status run() {
    for (int attempt = 0; attempt < kSlotScanAttemptsMax; attempt++) {
      if (context_.is_cancelled()) return Status(Code::kCancelled);
      if (attempt > 1) context_.backoff(attempt);
      bool again = false;
      RDMACC_RETURN_IF_ERROR(find_rows());
      RDMACC_RETURN_IF_ERROR(entries_.read(again));
      if (work_.result == ScanWork::Result::kAborted) return Status();
      if (again) continue;
      work_.result = ScanWork::Result::kDone;
      return Status();
    }
    return work_.abort(AbortReason::kReadUnstable);
  }

 private:
  // `still`: it is the page that it was.
  Status look_at_page(bool& still) {
    return with_port_in_place(context_, [&](auto& port) {
      const auto at =
          port.find(work_.address(context_.engine.layout.page_word(work_.slots.page)), 8);
      if (port.lost(at)) return DoorbellBatch::unreachable();
      uint64_t word = 0;
      port.read(at, 0, &word, sizeof(word));
      if (port.failed()) return DoorbellBatch::unreachable();
      still = word == work_.slots.word.bits;
      return Status();
    });
  }
  // Where the block has rows. One that is seen between two looks at a page that is the same is in
  // use, and no other one's until this transaction has ended: what is read there later is a row's.
  Status find_rows() {
    bool still = false;
    entries_.offsets().clear();
    entries_.offsets().reserve(work_.slots.slots);
    RDMACC_RETURN_IF_ERROR(look_at_page(still));
    if (!still) return Status();
    RDMACC_RETURN_IF_ERROR(look_at_slots());
    RDMACC_RETURN_IF_ERROR(look_at_page(still));
    if (!still) entries_.offsets().clear();
    return Status();
  }
  Status look_at_slots() {
    const SlotBlock& block = work_.slots;
    return with_port_in_place(context_, [&](auto& port) {
      const auto at = port.find(work_.address(block.first), block.slots * size_t{block.slot_bytes});
      if (port.lost(at)) return DoorbellBatch::unreachable();
      Header begin{};
      constexpr size_t kBytes = offsetof(Header, flags) + sizeof(begin.flags);
      static_assert(kBytes % 8 == 0);
      for (uint32_t i = 0; i < block.slots; i++) {
        const uint64_t distance = uint64_t{i} * block.slot_bytes;
        port.prefetch(work_.address(block.first + distance + kSlotsAhead * block.slot_bytes),
                      entries_.bytes_of_each());
        port.read(at, distance, &begin, kBytes);
        if (!is_row(begin, work_.table, block.from_bits)) continue;
        entries_.offsets().push_back(block.first + distance);
      }
      port.end_round();
      return port.failed() ? DoorbellBatch::unreachable() : Status();
    });
  }

  StageContext& context_;
  ScanWork& work_;
  ScanEntries entries_;
};

// `same`: its rows are what they were, and free.
template <typename Port>
Status check_block(Port& port, const StageContext& context, TableId table, const ReadBlock& block,
                   bool& same) {
  const size_t bytes = block.slots * size_t{block.slot_bytes};
  if (port.lost(port.find(block.first, bytes))) return DoorbellBatch::unreachable();
  ReadBlock::Sums sums;
  same = true;
  for (uint32_t i = 0; i < block.slots && same; i++) {
    const GlobalAddress slot = block.first.plus(uint64_t{i} * block.slot_bytes);
    port.prefetch(slot.plus(kSlotsAhead * block.slot_bytes), sizeof(Header));
    Header seen;
    // The lock before the stamp, as still_current() has it.
    port.read_line(port.find_within(slot, sizeof(Header)), &seen, WordOrder::kDescending);
    if (!is_row(seen, table, block.from_bits)) continue;
    sums.add(seen.wts, seen.key_hash);
    same = if_free_to_commit(seen.lock, context.stamps).verdict == Verdict::kDone;
  }
  same = same && sums == block.sums;
  port.end_round();
  return port.failed() ? DoorbellBatch::unreachable() : Status();
}

}  // namespace

Status check_blocks(StageContext& context, TableId table, std::span<const ReadBlock> blocks) {
  CHECK(context.batch().in_place());
  return with_port_in_place(context, [&](auto& port) {
    for (const ReadBlock& block : blocks) {
      if (context.is_cancelled()) return Status(Code::kCancelled);
      bool same = false;
      RDMACC_RETURN_IF_ERROR(check_block(port, context, table, block, same));
      if (!same) return aborted(AbortReason::kValidationFailed);
    }
    return Status();
  });
}

Status scan_slots(StageContext& context, std::span<ScanWork> blocks) {
  CHECK(context.batch().in_place() && context.rules.validate &&
        !context.rules.locks_what_it_reads());
  for (ScanWork& work : blocks) {
    CHECK(work.part == ScanWork::Part::kSlots && work.slots.slots > 0);
    auto table = context.table(work.table);
    if (!table.ok()) return table.status();
    RDMACC_RETURN_IF_ERROR(SlotScan(context, work, **table).run());
    if (work.result == ScanWork::Result::kAborted) return Status();
  }
  return Status();
}

}  // namespace rdmacc
