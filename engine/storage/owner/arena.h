#pragma once
#include <functional>
#include <span>
#include <vector>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/owner/page_table.h"

namespace rdmacc {

// The memory of one node's pages: units of one size per page, used, retired or free.
//
//   free      zero but for a header's own words; may be handed out
//   used      handed out
//   retired   given up, but transactions under way may still read it; waits in limbo
//
// What is in the region is only the page table: which units are used is worked out again from the
// indexes when a node is opened (mark_used, then settle). A page serves another size or kind once
// all its units are free; a page of slots or groups only when no transaction can have an address in
// it any more (page_recycler.h). Until then their headers are never zeroed, so that a lock CAS on a
// stale address always hits a lock word, and stamps of a header never go back.
//
// Used by the node's thread 0 alone; no method yields.
class Arena {
 public:
  Arena(Endpoint& endpoint, const RegionLayout& layout, const OwnedRegion& region);

  // Reads the page table; every unit counts as free until marked. Then settle() retires all that
  // was handed out once and is not marked, since it may still be read.
  Status open();
  // kOverflow stands for blocks of every size, here and in what follows.
  // False if there is no such unit or it is marked already.
  bool mark_used(PageKind kind, uint64_t offset);
  void settle();

  // Offset of a free unit of `bytes` (kSlot, kGroup, kBucket: its exact size; kOverflow: header
  // included, beyond a page whole pages; kArray: any size). kNoSpace names the node and how much is
  // used.
  Result<uint64_t> allocate(PageKind kind, uint64_t bytes);
  // Of a unit that was just allocated and not written to since: free at once.
  void give_back(uint64_t offset);
  // False if it is not in use, so that a repeated request does no harm.
  bool retire(uint64_t offset);

  // A unit of this kind begins at `offset`, whatever its state.
  bool is_unit(PageKind kind, uint64_t offset) const;
  bool in_use(PageKind kind, uint64_t offset) const;
  uint64_t unit_bytes(uint64_t offset) const;
  // Calls back for every unit of a page of `kind`; for a page of another kind for none.
  void for_each_unit(uint64_t page, PageKind kind,
                     const std::function<void(uint64_t offset, bool used)>& visit) const;
  uint64_t page_count() const { return pages_.size(); }

  // ---- Limbo, for the reclaimer.
  std::vector<uint64_t> take_retired();  // all that are in no batch yet
  void put_back_retired(std::vector<uint64_t> offsets);
  void reclaim(std::span<const uint64_t> offsets);  // they can no longer be read
  bool has_retired() const { return !retired_.empty(); }

  // ---- Empty pages of slots and groups, for the recycler.
  uint64_t pages_left() const { return page_table_.pages_left(); }
  uint64_t empty_pages() const { return empty_pages_; }  // that may be withdrawn
  // All of them: no unit there is handed out, unless no other page serves.
  void withdraw_empty_pages();
  uint64_t withdrawn_pages() const { return withdrawn_.size(); }
  void restore_withdrawn();
  // Makes them pages of any use, but for those with a header that is locked.
  void recycle_withdrawn();
  // Those are empty pages again when they can be recycled.
  bool has_refused() const { return !refused_.empty(); }
  void look_at_refused();

  uint64_t used_bytes() const { return used_bytes_; }  // retired units included
  uint64_t backed_bytes() const { return page_table_.backed_bytes(); }

 private:
  struct Page {
    PageKind kind = PageKind::kUnused;
    uint32_t unit_bytes = 0, units = 0;
    uint32_t free = 0;
    uint32_t first_free_word = 0;          // no free unit in an earlier word of `taken`
    bool refused = false;                  // empty, but was not to be recycled; in refused_
    std::vector<uint64_t> taken, retired;  // bit per unit; taken: used or retired
  };
  struct SizeClass {
    PageKind kind;
    uint32_t unit_bytes;
    std::vector<uint64_t> pages;  // that have free units
  };
  struct Place {
    uint64_t page;
    uint32_t unit;
  };

  // Of a header, whose incarnation is to rise for long after its page was recycled.
  static constexpr uint32_t kIncarnationsMax = 0xF000'0000;

  SizeClass& size_class(PageKind kind, uint32_t unit_bytes);
  void load_page(uint64_t index);
  Result<uint64_t> allocate_run(PageKind kind, uint64_t bytes);
  Result<SizeClass*> class_with_room(PageKind kind, uint32_t unit_bytes);
  SizeClass* smallest_above(PageKind kind, uint32_t unit_bytes);
  bool give_back_spare_pages();
  void leave_empty(Page& page);
  void restore(uint64_t page);
  bool restore_one(PageKind kind, uint32_t unit_bytes);
  bool restore_one_above(PageKind kind, uint32_t unit_bytes);
  bool may_become_another(uint64_t page) const;
  void recycle(uint64_t page);
  void refuse(uint64_t page);
  void give_back_unlisted(uint64_t index);
  void continue_incarnations(uint64_t index);
  uint64_t take_unit(SizeClass& units);
  bool place_of(uint64_t offset, Place* place) const;
  void free_unit(const Place& place);
  bool give_back_page(uint64_t index);
  bool was_handed_out(PageKind kind, uint64_t offset) const;
  void wipe(PageKind kind, uint64_t offset, uint64_t bytes);
  Status no_space() const;

  const RegionLayout layout_;
  const OwnedRegion& region_;
  PageTable page_table_;
  std::vector<Page> pages_;
  std::vector<SizeClass> classes_;
  std::vector<uint64_t> retired_;
  uint64_t used_bytes_ = 0;
  // Empty pages of slots and groups are counted here, or are withdrawn, or refused.
  uint64_t empty_pages_ = 0;
  std::vector<uint64_t> withdrawn_;
  std::vector<uint64_t> refused_;  // some of them in use again
};

}  // namespace rdmacc
