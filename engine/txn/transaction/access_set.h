#pragma once
#include <memory_resource>
#include <optional>

#include "engine/txn/rule/access.h"
#include "engine/txn/transaction/small_index.h"
#include "engine/txn/transaction/stable_list.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The headers of a transaction's read and write sets, one Access for each. They are found by their
// address, by an index that begins with the first question: a transaction that only looks keys up
// asks none, since a header is one key's as long as the transaction is under way (epochs keep it
// from becoming another's), and a key is looked up once.
class AccessSet {
 public:
  explicit AccessSet(std::pmr::memory_resource* memory) : memory_(memory), list_(memory) {}

  // Of a header that is not here.
  Access& add(const Access& access) {
    CHECK(!access.header.null());
    Access& added = list_.emplace_back(access);
    if (indexed()) enter(added);
    return added;
  }
  // For a look-up that is about to find its header. One that does not leaves it empty.
  Access& add_empty() {
    CHECK(!indexed());
    return list_.emplace_back();
  }
  // nullptr: it is not here.
  Access* find(GlobalAddress header) {
    if (!indexed()) index_all();
    return index_->find(header.bits);
  }
  // One header was found by two keys: it has become another's, as after a node lost its memory.
  bool ambiguous() const { return ambiguous_; }
  // False: nothing has asked yet, and a key's record is not here before it is found.
  bool indexed() const { return index_.has_value(); }

  // For slots of inserts, which nothing asks for by their address.
  StableList<Access>& list() { return list_; }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
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
  bool ambiguous_ = false;
};

}  // namespace rdmacc
