#pragma once
#include <vector>

#include "engine/storage/wire/storage_client.h"

namespace rdmacc {

// Groups in which this worker's inserts have taken a chain's last empty entry. Their owners are
// told of some of them in one message, and split them before an insert would have to ask for room
// with its locks held (engine/txn/stages/lock.h). It is a hint: what is lost costs a later insert
// its request.
//
// One per coordinator, its thread alone; keep it as long as its worker's scheduler is stepped.
class FullGroups {
 public:
  FullGroups(Worker& worker, StorageClient& storage) : worker_(worker), storage_(storage) {}
  FullGroups(const FullGroups&) = delete;
  FullGroups& operator=(const FullGroups&) = delete;

  void note(GlobalAddress group);
  // After the notes of a transaction. By a coroutine of its own, and no transaction waits for it.
  void tell_soon();
  // The same, and waits for the splits: the worker's next transaction would lose to them.
  void settle();
  // Of however few: before a transaction that is about to read much begins.
  void settle_all();
  // Waits (bounded) for the splits of which owners were told since the worker last waited. Before
  // one that has begun reads much: it would lose to further splits.
  void wait_for_splits();

 private:
  // Fewer are told only before a transaction that reads much. Where transactions wait they are
  // more: the rarer the waits, the better, and few inserts meet one of so many groups.
  static constexpr size_t kToldTogether = 8, kSettledTogether = 16;

  void tell();

  Worker& worker_;
  StorageClient& storage_;
  std::vector<GlobalAddress> noted_, told_;
  std::vector<NodeId> splitting_;  // nodes that were told
  bool telling_ = false;
};

}  // namespace rdmacc
