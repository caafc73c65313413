#pragma once
#include <vector>

#include "engine/storage/wire/storage_client.h"

namespace rdmacc {

// Overflow blocks that nothing names any more, given back to their nodes while their worker goes
// on: by coroutines of its. No node is woken for the first requests, which it answers when it wakes
// for something else; it is for those that follow while these are under way. So each is on its way
// when its transaction ends: the worker may be a session that then waits for its client for hours.
//
// A request may arrive when the transaction that replaced the block has long left the gate. That is
// sound for blocks and for nothing else: in use, and named by nothing, a block can be freed by this
// request alone, or by a node that is started again (it looks for blocks whose allocator has gone).
// So what was replaced under another incarnation of its node is left to that node, and a request
// that is on its way is refused by another incarnation (rpc.h, R2).
//
// One per worker, its thread alone. Keep it as long as the worker's scheduler is stepped.
class BackgroundFree {
 public:
  BackgroundFree(Worker& worker, const Topology& topology, StorageClient& storage)
      : worker_(worker), topology_(topology), storage_(storage) {}

  // Behind this nothing names the block but transactions that have seen it before.
  // `node_incarnation` is that of a moment at which something still named it.
  void add(GlobalAddress block, uint32_t node_incarnation);
  uint32_t incarnation_of(NodeId node) const;
  // Sends what was added; yields only if too many requests are under way, or to wait for one of
  // very many blocks. Where none ends soon, or no coroutine is to be had, the next call does.
  void start() {
    if (!freed_.empty()) start_sending();
  }
  // Waits until all have been sent and answered, for `us_max` at most.
  void finish(uint64_t us_max);

 private:
  struct Freed {
    GlobalAddress block;
    uint32_t node_incarnation;
  };
  void start_sending();
  bool wait_for_others(uint64_t us_max);
  void send(const std::vector<Freed>& freed, bool patient);

  static constexpr uint64_t kPauseUs = 20, kWaitUsMax = 10'000;
  static constexpr uint32_t kPatientMax = 12, kUnderWayMax = 24;  // requests
  static constexpr size_t kBlocksAtOnceMax = 512;

  Worker& worker_;
  const Topology topology_;
  StorageClient& storage_;
  std::vector<Freed> freed_;
  uint32_t under_way_ = 0;  // requests
};

}  // namespace rdmacc
