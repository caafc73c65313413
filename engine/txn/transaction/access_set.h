#pragma once
#include <algorithm>
#include <list>
#include <memory_resource>
#include <optional>

#include "engine/txn/rule/scanned_read.h"
#include "engine/txn/transaction/small_index.h"
#include "engine/txn/transaction/stable_list.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The headers of a transaction's read and write sets, one Access for each. They are found by their
// address, by an index that begins with the first question. Two kinds of transactions ask none,
// since a header is one key's as long as the transaction is under way (epochs keep it from becoming
// another's): one that only looks keys up, each once, and one that only scans tables, each once.
// The gap headers that absent keys have in common are found by an index of their own until then.
class AccessSet {
 public:
  explicit AccessSet(std::pmr::memory_resource* memory)
      : memory_(memory), list_(memory), scanned_tables_(memory) {}

  // Of a header that is not here.
  Access& add(const Access& access) {
    CHECK(!access.header.null());
    take_reads();
    only_scans_ = false;
    Access& added = list_.emplace_back(access);
    if (indexed()) {
      enter(added);
    } else if (added.gap) {
      if (!gaps_) gaps_.emplace(memory_);
      gaps_->at(added.header.bits) = &added;
    }
    return added;
  }
  // So many keys are about to be looked up, and their headers to be found: each has an access, one
  // behind the other, which stays empty if it is not found.
  Access* begin_look_up(size_t keys) {
    CHECK(only_looks_up());
    only_scans_ = false;
    return list_.emplace_zeros(keys);
  }
  // A scan of the whole table begins. True: it is the first one, and its headers are added by
  // add_scanned() for as long as that is possible.
  bool begin_scan(TableId table) {
    if (scanned(table) != nullptr) return false;
    scanned_tables_.emplace_back(table, memory_);
    return true;
  }
  // Of a header that such a scan meets: once, and nothing else can have met it. nullptr: something
  // may have, and the header has to be looked for.
  Access* add_scanned(const Access& access) {
    if (!only_scans_ || indexed()) return nullptr;
    DCHECK(!access.header.null() && !scanned_tables_.empty());
    return &list_.emplace_back(access);
  }
  // Headers of which such a scan only reads may be kept as reads.
  bool takes_reads() const { return only_scans_ && !indexed(); }
  // The reads of one table, for as long as takes_reads().
  StableList<ScannedRead>& reads_of(TableId table) {
    DCHECK(takes_reads() && scanned(table) != nullptr);
    return scanned(table)->reads;
  }
  // What these are, as long as nothing else is asked for: then they are among the rest.
  bool has_reads() const {
    return std::any_of(scanned_tables_.begin(), scanned_tables_.end(),
                       [](const ScannedTable& each) { return !each.reads.empty(); });
  }
  // Does `work` with each part of them that lies in one piece, until it does not return true.
  template <typename Work>
  bool for_reads(const Work& work) const {
    return std::all_of(scanned_tables_.begin(), scanned_tables_.end(), [&](const auto& each) {
      return each.reads.for_parts([&](auto some) { return work(each.table, some); });
    });
  }
  // nullptr: it is not here.
  Access* find(GlobalAddress header) {
    if (!indexed()) index_all();
    return index_->find(header.bits);
  }
  // The same of what a look-up, or a scan, has met. A key's own header that is not held cannot be
  // here where keys are only looked up, each once; one that is may have been kept by a look that
  // has lost.
  Access* find_met(const Access& seen) {
    if (!only_looks_up() || !scanned_tables_.empty()) return find(seen.header);
    if (seen.gap) return gaps_ ? gaps_->find(seen.header.bits) : nullptr;
    return seen.held() ? find(seen.header) : nullptr;
  }
  // One header was found by two keys: it has become another's, as after a node lost its memory.
  bool ambiguous() const { return ambiguous_; }
  // True: nothing has asked yet, and a key's record is not here before it is found.
  bool only_looks_up() const {
    return !indexed() && (!only_scans_ || (list_.empty() && !has_reads()));
  }

  // For slots of inserts, which nothing asks for by their address.
  StableList<Access>& list() { return list_; }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  struct ScannedTable {
    ScannedTable(TableId of_table, std::pmr::memory_resource* memory)
        : table(of_table), reads(memory) {}
    const TableId table;
    StableList<ScannedRead> reads;
  };

  bool indexed() const { return index_.has_value(); }
  ScannedTable* scanned(TableId table) {
    for (ScannedTable& each : scanned_tables_) {
      if (each.table == table) return &each;
    }
    return nullptr;
  }
  void enter(Access& access) {
    Access*& place = index_->at(access.header.bits);
    ambiguous_ = ambiguous_ || place != nullptr;
    if (place == nullptr) place = &access;
  }
  void take_reads() {
    for (ScannedTable& each : scanned_tables_) {
      for (const ScannedRead& read : each.reads) list_.emplace_back(read.access(each.table));
      each.reads.clear();
    }
  }
  void index_all() {
    take_reads();
    index_.emplace(memory_);
    for (Access& access : list_) {
      if (!access.header.null()) enter(access);
    }
  }

  std::pmr::memory_resource* const memory_;
  StableList<Access> list_;
  std::optional<SmallIndex<Access>> index_;  // by header address
  std::optional<SmallIndex<Access>> gaps_;   // the same of gap headers, until there is the other
  std::pmr::list<ScannedTable> scanned_tables_;
  bool only_scans_ = true;  // every access is one of add_scanned()
  bool ambiguous_ = false;
};

}  // namespace rdmacc
