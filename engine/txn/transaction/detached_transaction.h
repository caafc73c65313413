#pragma once
#include "engine/txn/transaction/ordered_request.h"
#include "engine/txn/transaction/row_source.h"
#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// A transaction without an engine: the rows that it may read are given to it, and its writes are
// collected. A procedure of a deterministic protocol runs a Session's logic on one, so that every
// node that has the same rows comes to the same writes. Used by one coroutine.
class DetachedTransaction final : public RowSource {
 public:
  // What a look-up of a key comes to whose row was not given.
  enum class Ungiven : uint8_t {
    kRefused,  // kInvalidArgument
    kAbsent,   // to learn what a transaction touches whose keys do not depend on rows
  };

  // `scheduler` runs the caller; nullptr when there is none.
  explicit DetachedTransaction(Scheduler* scheduler, Ungiven ungiven = Ungiven::kRefused)
      : scheduler_(scheduler), ungiven_(ungiven) {}
  DetachedTransaction(const DetachedTransaction&) = delete;
  DetachedTransaction& operator=(const DetachedTransaction&) = delete;

  // Before anything else, once for each key.
  void give(TableId table, std::string_view key, const OrderedRow& row);

  Status start(const Restart& before) override;  // CHECKs: it has begun
  bool started() const override { return true; }
  Status look_up_many(TableId table, std::span<const std::string_view> keys,
                      std::span<KeyState*> states, bool to_write) override;
  KeyState& touch_unchecked(TableId table, std::string_view key) override;
  Status write(KeyState& state, bool deleted, std::string_view row) override;
  Status amend(KeyState& state, std::string_view row) override { return write(state, false, row); }
  // Hints are for those that read more than they declare.
  const KeyState* known(TableId, std::string_view) override { return nullptr; }
  Status unvalidated_read(TableId table, std::string_view key, bool& found,
                          std::string_view& row) override;
  Status try_lock(TableId table, std::string_view key, RowLockMode mode, RowLock& result) override;
  void set_command(uint32_t command) override { command_ = command; }
  uint32_t savepoint() override { return ++level_; }
  void rollback_to(uint32_t level) override;
  Status let_go() override { return Status(); }
  void release(uint32_t level) override;

  // Something looked for a key that was not given.
  bool asked_for_more() const { return asked_for_more_; }
  // What the last writes of every key come to, in the order in which keys were touched.
  std::vector<OrderedWrite> writes() const;
  const KeyStates& keys() const { return keys_; }
  Scheduler* scheduler() const { return scheduler_; }

 private:
  Scheduler* const scheduler_;
  const Ungiven ungiven_;
  SetMemory memory_;
  KeyStates keys_{memory_};
  uint32_t command_ = 0, level_ = 0;
  bool asked_for_more_ = false;
};

}  // namespace rdmacc
