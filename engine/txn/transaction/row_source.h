#pragma once
#include <span>
#include <string_view>

#include "engine/txn/stages/row_lock.h"
#include "engine/txn/transaction/key_states.h"
#include "engine/txn/transaction/restart.h"

namespace rdmacc {

// Where a session's rows come from, and its writes go to: a transaction of the engine, or rows that
// were given beforehand, to a procedure. Used by one coroutine at a time.
class RowSource {
 public:
  // At the first access, with what is kept of attempts that lost.
  virtual Status start(const Restart& before) = 0;
  virtual bool started() const = 0;

  // The keys' states with their bases known; for an own write whose base was not asked for, no verb
  // is spent. `to_write`: rows that others have locked early are in its way. Conflicts abort (the
  // caller calls abort()).
  virtual Status look_up_many(TableId table, std::span<const std::string_view> keys,
                              std::span<KeyState*> states, bool to_write) = 0;
  // Of a key that its caller knows to be new.
  virtual KeyState& touch_unchecked(TableId table, std::string_view key) = 0;
  // Adds an own write to a key whose base is known (or kUnchecked).
  virtual Status write(KeyState& state, bool deleted, std::string_view row) = 0;
  // As write(), but the newest own write may be replaced if command and savepoint level are the
  // same.
  virtual Status amend(KeyState& state, std::string_view row) = 0;
  // What is known of a key without asking; nullptr: nothing.
  virtual const KeyState* known(TableId table, std::string_view key) = 0;

  // Not of given rows: kInvalidArgument.
  // Outside of the protocol (unvalidated_read.h); `row` lives until the coroutine yields.
  virtual Status unvalidated_read(TableId table, std::string_view key, bool& found,
                                  std::string_view& row) = 0;
  // Reads the key and, if the mode is exclusive or shared, locks its row now, by the protocol's
  // rules but without waiting. Under protocols that lock nothing it is only read.
  virtual Status try_lock(TableId table, std::string_view key, RowLockMode mode,
                          RowLock& result) = 0;

  // Tags of own writes from now on.
  virtual void set_command(uint32_t command) = 0;
  virtual uint32_t savepoint() = 0;
  virtual void rollback_to(uint32_t level) = 0;
  virtual void release(uint32_t level) = 0;
  // Gives back the row locks of levels that were rolled back, where that is possible.
  virtual Status let_go() = 0;

 protected:
  RowSource() = default;
  ~RowSource() = default;
};

}  // namespace rdmacc
