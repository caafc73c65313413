#include "engine/txn/transaction/detached_transaction.h"

#include "rdma/base/check.h"

namespace rdmacc {

void DetachedTransaction::give(TableId table, std::string_view key, const OrderedRow& row) {
  KeyState& state = keys_.touch(table, key);
  state.base = row.found ? KeyState::Base::kExists : KeyState::Base::kAbsent;
  keys_.keep_row(state, row.row);
  state.version = row.version;
}

Status DetachedTransaction::start(const Restart& /*before*/) {
  CHECK(!"rows that are given are those of a transaction under way");
  return Status(Code::kInvalidArgument);
}

Status DetachedTransaction::unvalidated_read(TableId, std::string_view, bool&, std::string_view&) {
  return Status(Code::kInvalidArgument, "a procedure's transaction reads nothing unvalidated");
}

Status DetachedTransaction::try_lock(TableId, std::string_view, RowLockMode, RowLock&) {
  return Status(Code::kInvalidArgument, "a procedure's transaction locks nothing by itself");
}

Status DetachedTransaction::look_up_many(TableId table, std::span<const std::string_view> keys,
                                         std::span<KeyState*> states, bool /*to_write*/) {
  CHECK(keys.size() == states.size());
  for (size_t i = 0; i < keys.size(); i++) {
    states[i] = &keys_.touch(table, keys[i]);
    if (states[i]->base != KeyState::Base::kUnknown) continue;
    asked_for_more_ = true;
    if (ungiven_ == Ungiven::kRefused) {
      return Status(Code::kInvalidArgument, "a procedure reads a key that was not declared");
    }
    states[i]->base = KeyState::Base::kAbsent;
  }
  return Status();
}

KeyState& DetachedTransaction::touch_unchecked(TableId table, std::string_view key) {
  KeyState& state = keys_.touch(table, key);
  if (state.base == KeyState::Base::kUnknown) state.base = KeyState::Base::kUnchecked;
  return state;
}

Status DetachedTransaction::write(KeyState& state, bool deleted, std::string_view row) {
  DCHECK(state.base != KeyState::Base::kUnknown);
  keys_.write(state, command_, level_, deleted, row);
  return Status();
}

void DetachedTransaction::rollback_to(uint32_t level) {
  for (KeyState& state : keys_.all()) {
    while (state.own != nullptr && state.own->level >= level) keys_.forget_newest(state);
  }
  if (level > 0) level_ = std::min(level_, level - 1);
}

void DetachedTransaction::release(uint32_t level) {
  CHECK(level > 0);
  keys_.release(level);
  level_ = std::min(level_, level - 1);
}

std::vector<OrderedWrite> DetachedTransaction::writes() const {
  std::vector<OrderedWrite> writes;
  for (const KeyState& state : keys_.all()) {
    const OwnVersion* last = state.to_write();
    if (last == nullptr) continue;
    writes.push_back(
        {state.table, std::string(state.key), last->deleted, std::string(last->row())});
  }
  return writes;
}

}  // namespace rdmacc
