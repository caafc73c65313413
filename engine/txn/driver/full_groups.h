#pragma once
#include <vector>

#include "engine/storage/wire/storage_client.h"

namespace rdmacc {

// Groups in which this worker's inserts have taken a chain's last empty entry. Their owners are
// told, and split them before an insert would have to ask for room with its locks held
// (engine/txn/stages/lock.h). A coroutine of its own tells some of them in one message, and no
// transaction waits for it. It is a hint: what is lost costs a later insert its request.
//
// One per coordinator, its thread alone; keep it as long as its worker's scheduler is stepped.
class FullGroups {
 public:
  FullGroups(Worker& worker, StorageClient& storage) : worker_(worker), storage_(storage) {}
  FullGroups(const FullGroups&) = delete;
  FullGroups& operator=(const FullGroups&) = delete;

  void note(GlobalAddress group);
  // Before much is read that a split would make worthless: waits (bounded) for those of the groups
  // that this worker has told of since it last waited.
  void wait_for_splits();

 private:
  // Fewer are told only before a wait for their splits.
  static constexpr size_t kToldTogether = 8;

  void start_telling();
  void tell();

  Worker& worker_;
  StorageClient& storage_;
  std::vector<GlobalAddress> noted_, told_;
  std::vector<NodeId> splitting_;  // nodes that were told
  bool telling_ = false;
};

}  // namespace rdmacc
