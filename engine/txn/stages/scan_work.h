#pragma once
#include <algorithm>
#include <vector>

#include "engine/storage/layout/page_word.h"
#include "engine/txn/rule/scanned_read.h"
#include "engine/txn/stages/find.h"
#include "engine/txn/stages/row_lock.h"

// What a scan is to read next, and what was read.

namespace rdmacc {

// A part of a node's hash space: the keys with group_bits_of(hash, depth) == bits.
struct HashRange {
  uint64_t bits = 0;
  uint32_t depth = 0;
};

struct ScannedTuple {
  Access access;
  uint32_t flags = 0;
  uint64_t overflow = 0;    // offset of the overflow block, 0 = none
  std::string_view record;  // in the context's arena
  Access* kept = nullptr;   // the transaction's, once it has taken the tuple over
};

// What is left of a tuple in a scan that locks nothing and takes rows for what they mostly are: no
// more than read.
struct ScannedRow {
  ScannedRead read;
  uint32_t incarnation = 0;
  uint32_t flags = 0;
  uint64_t overflow = 0;        // offset of the overflow block, 0 = none
  std::string_view record;      // in the context's arena; empty where headers alone are wanted
  ScannedRead* kept = nullptr;  // in the transaction's read set, if it is there
};

// Slots that lie beside each other in a page, and with them those of other tables whose slots have
// the same size.
struct SlotBlock {
  uint64_t first = 0;  // offset of the first one
  uint32_t slots = 0;
  uint32_t slot_bytes = 0;
  uint64_t page = 0;  // its index
  PageWord word;      // of the page
  // Rows that come before this range where hash ranges are walked are not wanted (is_before()).
  uint64_t from_bits = 0;
};

// Is a hash in none of the ranges that a walk (scan_ranges.h) comes to from `bits` on? It turns
// their bits upside down, so that the lowest bit in which both differ decides.
constexpr bool is_before(uint64_t hash, uint64_t bits) {
  const uint64_t differ = (hash ^ bits) & ((1ull << kDepthMax) - 1);
  return (bits & differ & (0 - differ)) != 0;
}

// A part of a scan.
struct ScanWork {
  // In:
  TableId table = kNoTable;
  NodeId node = 0;
  enum class Part : uint8_t {
    kGroup,      // of `range`: the group's gap header, and what its entries name
    kGapHeader,  // of `range`: that alone
    kSlots,      // of `slots`: the rows of the table there, whatever group they are in
  } part = Part::kGroup;
  HashRange range;
  SlotBlock slots;
  // So many bytes of each row's beginning are wanted: what lies behind them need not be sent, nor
  // read where it is in an overflow block.
  uint32_t row_bytes_max = kWholeRow;
  // How much of a slot's record is read at first, in place: of other rows that was enough. Where it
  // is not, the group's records are read once more, as a whole.
  uint32_t record_head_bytes = kWholeRow;
  // Records may come as `rows` in place of `tuples`, all of them or none.
  bool takes_rows = false;
  bool headers_only = false;  // and wants no record of such rows
  // Out:
  enum class Result : uint8_t {
    kPending,
    kDone,   // gap and tuples hold all of the range
    kSplit,  // the group covers only part of the range: scan its two halves
    kAborted,
    kTooLarge,  // rpc only: the answer does not fit a message; nothing was done
  } result = Result::kPending;
  AbortReason reason = AbortReason::kNone;
  Access gap;
  std::vector<ScannedTuple> tuples;
  std::vector<ScannedRow> rows;
  Access* kept_gap = nullptr;  // where the transaction keeps it (Transaction::scan)

  // For another range; lists keep their memory.
  void begin(TableId of_table, NodeId of_node, HashRange of_range) {
    table = of_table;
    node = of_node;
    part = Part::kGroup;
    range = of_range;
    result = Result::kPending;
    reason = AbortReason::kNone;
    gap = Access{};
    tuples.clear();
    rows.clear();
    kept_gap = nullptr;
  }
  GlobalAddress address(uint64_t offset) const { return GlobalAddress::make(node, offset); }
  // The operation itself has not failed.
  Status abort(AbortReason because) {
    result = Result::kAborted;
    reason = because;
    return Status();
  }
};

// How much of a record is wanted, before its key is known and after.
inline size_t record_bytes_wanted(const ScanWork& work, size_t bytes) {
  return std::min<size_t>(bytes, record_bytes(kKeyBytesMax, work.row_bytes_max));
}
inline std::string_view wanted_part(const ScanWork& group, std::string_view record) {
  std::string_view key, row;
  if (!split_record(record, key, row) || row.size() <= group.row_bytes_max) return record;
  return record.substr(0, record.size() - row.size() + group.row_bytes_max);
}

}  // namespace rdmacc
