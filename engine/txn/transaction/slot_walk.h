#pragma once
#include <optional>
#include <vector>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/stages/scan_work.h"

namespace rdmacc {

// The pages of a node whose slots have the size of a table's, or a larger one where a node has had
// to put slots into such pages; block by block.
class SlotWalk {
 public:
  // As the node's page table is now; from its first block on.
  Status begin(EngineContext& engine, const CachedTable& table, NodeId node, VerbArena& arena);
  // In all of these pages, whichever tables they are of.
  uint64_t slots() const { return slots_; }
  // About how many of them are the table's, as its node counts them.
  static Status count_rows(EngineContext& engine, TableId table, NodeId node, VerbArena& arena,
                           uint64_t& rows);

  struct Position {
    size_t page = 0;
    uint32_t slot = 0;
  };
  Position position() const { return at_; }
  void go_back_to(Position position) { at_ = position; }
  bool ended() const { return at_.page == end_page_; }
  SlotBlock next();
  // The first of these pages whose index is not less; nothing: there is none.
  std::optional<uint64_t> page_from(uint64_t index) const;
  // Goes to one of them, and ends behind it.
  void go_to_page(uint64_t index);

 private:
  static constexpr uint32_t kBlockBytes = 8 * 1024;  // so much stays in the nearest cache

  struct Page {
    uint32_t index;
    uint32_t slot_bytes;
    uint32_t slots() const { return static_cast<uint32_t>(kPageBytes / slot_bytes); }
  };

  size_t place_of(uint64_t index) const;
  void add_page(uint64_t index, PageWord word, uint64_t least, uint64_t most);

  uint64_t first_page_ = 0;  // where the pages begin
  std::vector<Page> pages_;
  uint64_t slots_ = 0;
  Position at_;
  size_t end_page_ = 0;
};

// Where scans that share their walk by slots are: the next page that one of them takes. It fits in
// a word beside that of a walk by groups (TableWalk).
struct PageWalk {
  NodeId node = 0;
  uint64_t page = 0;

  static bool is_one(uint64_t word) { return (word & kMark) != 0; }
  static PageWalk unpack(uint64_t word) {
    return {static_cast<NodeId>(word >> 32 & UINT16_MAX), word & UINT32_MAX};
  }
  uint64_t pack() const { return kMark | uint64_t{node} << 32 | page; }

 private:
  static constexpr uint64_t kMark = 1ull << 63;
};
static_assert(sizeof(NodeId) == sizeof(uint16_t));

}  // namespace rdmacc
