#pragma once
#include <algorithm>
#include <list>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "engine/txn/rule/scanned_read.h"
#include "engine/txn/transaction/small_index.h"
#include "engine/txn/transaction/stable_list.h"
#include "engine/txn/transaction/table_set.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The headers of a transaction's read and write sets, one Access for each. They are found by their
// address, by an index that begins with the first question. What asks none are look-ups of keys,
// each once, and the first scan of a whole table: a header is one key's, and of one table, as long
// as the transaction is under way (epochs keep it from becoming another's), so that neither meets
// what is here already. A table is its scans' own as long as nothing else has met a header of it:
// the index does not have its headers, and those of which scans only read are kept as reads.
// The gap headers that absent keys have in common are found by an index of their own until then.
class AccessSet {
 public:
  explicit AccessSet(std::pmr::memory_resource* memory)
      : memory_(memory), list_(memory), scanned_tables_(memory), rows_read_(memory) {}

  // Of a header that is not here.
  Access& add(const Access& access) {
    CHECK(!access.header.null());
    meet(access.table);
    Access& added = list_.emplace_back(access);
    if (indexed()) {
      enter(added);
    } else if (added.gap) {
      if (!gaps_) gaps_.emplace(memory_);
      gaps_->at(added.header.bits) = &added;
    }
    return added;
  }
  // So many keys of the table are about to be looked up, and their headers to be found: each has an
  // access, one behind the other, which stays empty if it is not found.
  Access* begin_look_up(TableId table, size_t keys) {
    CHECK(only_looks_up(table));
    meet(table);
    return list_.emplace_zeros(keys);
  }
  // A scan of the whole table begins. True: it is the first one, and its headers are added by
  // add_scanned() for as long as the table is its own.
  bool begin_scan(TableId table) {
    if (!by_table_) by_table_.emplace(memory_);
    ScannedTable*& place = by_table_->at(table);
    if (place != nullptr) return false;
    place = &scanned_tables_.emplace_back(table, !met_tables_.has(table), memory_);
    return true;
  }
  // Of a header that such a scan meets: once, and nothing else can have met it. nullptr: something
  // may have, and the header has to be looked for.
  Access* add_scanned(const Access& access) {
    DCHECK(!access.header.null());
    ScannedTable* scan = scanned(access.table);
    if (scan == nullptr || !scan->own) return nullptr;
    scan->accesses++;
    return &list_.emplace_back(access);
  }
  // Headers of which such a scan only reads may be kept as reads.
  bool takes_reads(TableId table) const {
    const ScannedTable* scan = scanned(table);
    return scan != nullptr && scan->own;
  }
  // One of them, for as long as takes_reads(). nullptr: of a scan that is not the table's first.
  // The first may have met it, too: such a header may be here twice, and is validated as often as
  // it was read.
  ScannedRead* add_read(TableId table, const ScannedRead& read, bool first) {
    DCHECK(takes_reads(table));
    ScannedTable* scan = scanned(table);
    if (first) return &scan->reads.emplace_back(read);
    scan->read_again.emplace_back(read);
    return nullptr;
  }
  // All rows that such a scan has met in a block of slots.
  void add_block(TableId table, const ReadBlock& block) {
    DCHECK(takes_reads(table));
    scanned(table)->blocks.emplace_back(block);
  }
  // The same of what others have read for the transaction, in memory that lasts as long as it does.
  // The table's scan has begun.
  void borrow_blocks(TableId table, std::span<const ReadBlock> blocks) {
    CHECK(scanned(table) != nullptr);
    scanned(table)->borrowed_blocks.push_back(blocks);
  }
  // As for_reads(), but of blocks, whatever else has asked for headers of their table.
  template <typename Work>
  bool for_blocks(const Work& work) const {
    return std::all_of(
        scanned_tables_.begin(), scanned_tables_.end(), [&](const ScannedTable& each) {
          const auto part = [&](std::span<const ReadBlock> some) { return work(each.table, some); };
          return each.blocks.for_parts(part) && std::ranges::all_of(each.borrowed_blocks, part);
        });
  }
  void add_gap_again(const Access& gap) {
    DCHECK(takes_reads(gap.table) && gap.gap && gap.read && !gap.held());
    scanned(gap.table)->accesses++;
    list_.emplace_back(gap);
  }
  // The same of what others have read for the transaction, in memory that lasts as long as it does.
  void borrow_reads(TableId table, std::span<const ScannedRead> reads) {
    DCHECK(takes_reads(table));
    scanned(table)->borrowed.push_back(reads);
  }
  // Rows that were looked up by their keys and are no more than read. What else the transaction
  // does with them it looks up again: such a header may be among the accesses, too, or here twice,
  // and is validated as often as it was read, under the transaction's own lock as well.
  void add_row(TableId table, const ScannedRead& read) {
    if (rows_of_latest_ == nullptr || rows_of_latest_->table != table) {
      rows_of_latest_ = &rows_of(table);
    }
    rows_of_latest_->reads.emplace_back(read);
    rows_count_++;
  }
  // The same of what others have read for the transaction, in memory that lasts as long as it does.
  void borrow_rows(TableId table, std::span<const ScannedRead> reads) {
    rows_of(table).borrowed.push_back(reads);
  }
  bool has_rows() const { return !rows_read_.empty(); }
  bool has_rows(TableId table) const {
    return std::any_of(rows_read_.begin(), rows_read_.end(),
                       [table](const TableReads& each) { return each.table == table; });
  }
  size_t rows_count() const { return rows_count_; }  // but for those that others have read
  // The access of a header that such a scan has met, and that is more than read from now on.
  // `kept`: its read as it was kept, while takes_reads(); nullptr: it was not.
  Access& take_read(const Access& access, ScannedRead* kept) {
    CHECK(access.read && !access.held());
    ScannedTable* scan = scanned(access.table);
    if (scan != nullptr && scan->own) {
      if (kept != nullptr) kept->header = {};
      scan->accesses++;
      return list_.emplace_back(access);
    }
    Access* known = find(access);
    return known != nullptr ? *known : add(access);
  }
  // What these are, as long as nothing else asks for headers of their table: then they are among
  // the rest.
  bool has_reads() const { return has_rows() || has_scanned_reads(); }
  bool has_scanned_reads() const {
    return std::any_of(scanned_tables_.begin(), scanned_tables_.end(),
                       [](const ScannedTable& each) { return each.has_reads(); });
  }
  // Does `work` with each part of them that lies in one piece, until it does not return true.
  // Those that were taken out have no header.
  template <typename Work>
  bool for_reads(const Work& work) const {
    return for_rows(work) && for_scanned_reads(work);
  }
  template <typename Work>
  bool for_rows(const Work& work) const {
    return std::all_of(rows_read_.begin(), rows_read_.end(),
                       [&](const TableReads& each) { return each.for_parts(work); });
  }
  template <typename Work>
  bool for_scanned_reads(const Work& work) const {
    return std::all_of(scanned_tables_.begin(), scanned_tables_.end(),
                       [&](const ScannedTable& each) {
                         const auto part = [&](std::span<const ScannedRead> some) {
                           return work(each.table, some);
                         };
                         return each.for_parts(work) && each.read_again.for_parts(part);
                       });
  }
  // By its header, and its table. nullptr: it is not here.
  Access* find(const Access& seen) {
    meet(seen.table);
    if (!indexed()) index_all();
    return index_->find(seen.header.bits);
  }
  // The same of what a look-up, or a scan, has met. A key's own header that is not held cannot be
  // here where keys are only looked up, each once; one that is may have been kept by a look that
  // has lost.
  Access* find_met(const Access& seen) {
    if (!only_looks_up(seen.table)) return find(seen);
    if (seen.gap) return gaps_ ? gaps_->find(seen.header.bits) : nullptr;
    return seen.to_give_back() ? find(seen) : nullptr;
  }
  // One header was found by two keys: it has become another's, as after a node lost its memory.
  bool ambiguous() const { return ambiguous_; }
  // True: nothing has asked yet, and the record of a key of the table is not here before it is
  // found.
  bool only_looks_up(TableId table) const { return !indexed() && scanned(table) == nullptr; }

  // For slots of inserts, which nothing asks for by their address.
  StableList<Access>& list() { return list_; }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  // Of one table, by the transaction and by others for it.
  struct TableReads {
    TableReads(TableId of_table, std::pmr::memory_resource* memory)
        : table(of_table), reads(memory) {}
    template <typename Work>
    bool for_parts(const Work& work) const {
      const auto part = [&](std::span<const ScannedRead> some) { return work(table, some); };
      return reads.for_parts(part) && std::all_of(borrowed.begin(), borrowed.end(), part);
    }

    const TableId table;
    StableList<ScannedRead> reads;
    std::vector<std::span<const ScannedRead>> borrowed;
  };
  struct ScannedTable : TableReads {
    ScannedTable(TableId of_table, bool is_own, std::pmr::memory_resource* memory)
        : TableReads(of_table, memory), own(is_own), read_again(memory), blocks(memory) {}
    bool has_reads() const {
      return !reads.empty() || !read_again.empty() || !borrowed.empty() || !blocks.empty() ||
             !borrowed_blocks.empty();
    }

    bool own;             // nothing but scans has met a header of it
    size_t accesses = 0;  // among all, while it is
    StableList<ScannedRead> read_again;
    StableList<ReadBlock> blocks;
    std::vector<std::span<const ReadBlock>> borrowed_blocks;
  };

  TableReads& rows_of(TableId table) {
    const auto known =
        std::find_if(rows_read_.begin(), rows_read_.end(),
                     [table](const TableReads& each) { return each.table == table; });
    return known != rows_read_.end() ? *known : rows_read_.emplace_back(table, memory_);
  }
  bool indexed() const { return index_.has_value(); }
  ScannedTable* scanned(TableId table) const {
    return by_table_ ? by_table_->find(table) : nullptr;
  }
  void enter(Access& access) {
    Access*& place = index_->at(access.header.bits);
    // Two scans may have read one gap header: both reads are validated.
    const bool read_again = place != nullptr && place->gap && access.gap && !access.held();
    ambiguous_ = ambiguous_ || (place != nullptr && !read_again);
    if (place == nullptr) place = &access;
  }
  // Something else than a scan meets a header of the table.
  void meet(TableId table) {
    if (met_tables_.add(table)) end_own_scan(table);
  }
  [[gnu::noinline]] void end_own_scan(TableId table) {
    ScannedTable* scan = scanned(table);
    if (scan != nullptr && scan->own) share(*scan);
  }
  // Its headers are found as all others from now on.
  void share(ScannedTable& scan) {
    const bool again = !scan.read_again.empty() || !scan.borrowed.empty();
    if (again && !indexed()) index_all();
    if (indexed() && scan.accesses > 0) {
      for (Access& access : list_) {
        if (access.table == scan.table && !access.header.null()) enter(access);
      }
    }
    for (const ScannedRead& read : scan.reads) {
      if (read.header.null()) continue;
      Access& access = list_.emplace_back(read.access(scan.table));
      if (indexed()) enter(access);
    }
    for (const ScannedRead& read : scan.read_again) share_again(scan.table, read);
    for (const auto& some : scan.borrowed) {
      for (const ScannedRead& read : some) share_again(scan.table, read);
    }
    scan.reads.clear();
    scan.read_again.clear();
    scan.borrowed.clear();
    scan.own = false;
  }
  // A read that differs from the one that is found stays beside it, so that one of the two fails.
  void share_again(TableId table, const ScannedRead& read) {
    if (read.header.null()) return;
    Access* known = index_->find(read.header.bits);
    if (known != nullptr && known->read && known->read_wts == read.read_wts) return;
    Access& access = list_.emplace_back(read.access(table));
    if (known == nullptr) enter(access);
  }
  void index_all() {
    index_.emplace(memory_);
    const bool all = !by_table_;
    for (Access& access : list_) {
      if (!access.header.null() && (all || !takes_reads(access.table))) enter(access);
    }
  }

  std::pmr::memory_resource* const memory_;
  StableList<Access> list_;
  std::optional<SmallIndex<Access>> index_;  // by header address, but of tables that are a scan's
  std::optional<SmallIndex<Access>> gaps_;   // the same of gap headers, until there is the other
  TableSet met_tables_;                      // but by scans
  std::pmr::list<ScannedTable> scanned_tables_;
  std::optional<SmallIndex<ScannedTable>> by_table_;  // of these, once there are any
  std::pmr::list<TableReads> rows_read_;
  TableReads* rows_of_latest_ = nullptr;
  size_t rows_count_ = 0;
  bool ambiguous_ = false;
};

}  // namespace rdmacc
