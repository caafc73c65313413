#pragma once
#include <algorithm>
#include <memory_resource>
#include <optional>
#include <vector>

#include "engine/txn/rule/access.h"
#include "engine/txn/transaction/small_index.h"
#include "engine/txn/transaction/stable_list.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The headers of a transaction's read and write sets, one Access for each. They are found by their
// address, by an index that begins with the first question. Two kinds of transactions ask none,
// since a header is one key's as long as the transaction is under way (epochs keep it from becoming
// another's): one that only looks keys up, each once, and one that only scans tables, each once.
class AccessSet {
 public:
  explicit AccessSet(std::pmr::memory_resource* memory)
      : memory_(memory), list_(memory), scanned_tables_(memory) {}

  // Of a header that is not here.
  Access& add(const Access& access) {
    CHECK(!access.header.null());
    only_scans_ = false;
    Access& added = list_.emplace_back(access);
    if (indexed()) enter(added);
    return added;
  }
  // Keys are about to be looked up, and their headers to be found: each has an access, which stays
  // empty if it is not found.
  void begin_look_up() {
    CHECK(only_looks_up());
    only_scans_ = false;
  }
  Access& add_empty() { return list_.emplace_back(); }
  // A scan of the whole table begins. True: it is the first one, and its headers are added by
  // add_scanned() for as long as that is possible.
  bool begin_scan(TableId table) {
    if (std::find(scanned_tables_.begin(), scanned_tables_.end(), table) != scanned_tables_.end()) {
      return false;
    }
    scanned_tables_.push_back(table);
    return true;
  }
  // Of a header that such a scan meets: once, and nothing else can have met it. nullptr: something
  // may have, and the header has to be looked for.
  Access* add_scanned(const Access& access) {
    if (!only_scans_ || indexed()) return nullptr;
    DCHECK(!access.header.null() && !scanned_tables_.empty());
    return &list_.emplace_back(access);
  }
  // nullptr: it is not here.
  Access* find(GlobalAddress header) {
    if (!indexed()) index_all();
    return index_->find(header.bits);
  }
  // One header was found by two keys: it has become another's, as after a node lost its memory.
  bool ambiguous() const { return ambiguous_; }
  // True: nothing has asked yet, and a key's record is not here before it is found.
  bool only_looks_up() const { return !indexed() && (!only_scans_ || list_.empty()); }

  // For slots of inserts, which nothing asks for by their address.
  StableList<Access>& list() { return list_; }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  bool indexed() const { return index_.has_value(); }
  void enter(Access& access) {
    Access*& place = index_->at(access.header.bits);
    ambiguous_ = ambiguous_ || place != nullptr;
    if (place == nullptr) place = &access;
  }
  void index_all() {
    index_.emplace(memory_);
    for (Access& access : list_) {
      if (!access.header.null()) enter(access);
    }
  }

  std::pmr::memory_resource* const memory_;
  StableList<Access> list_;
  std::optional<SmallIndex<Access>> index_;  // by header address
  std::pmr::vector<TableId> scanned_tables_;
  bool only_scans_ = true;  // every access is one of add_scanned()
  bool ambiguous_ = false;
};

}  // namespace rdmacc
