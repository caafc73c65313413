#pragma once
#include <vector>

#include "engine/storage/wire/storage_client.h"

namespace rdmacc {

// Overflow blocks that nothing names any more, given back to their nodes while their worker goes
// on: by a coroutine of its, one request per node at a time, for which no node is woken. What is
// replaced before a node has answered goes in the next one.
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
  // Sends what was added, unless a request is on its way: then that one's coroutine does. Where no
  // coroutine is to be had the next call does. Does not yield.
  void start();
  // Waits until all have been sent and answered, for `us_max` at most.
  void finish(uint64_t us_max);

 private:
  struct Freed {
    GlobalAddress block;
    uint32_t node_incarnation;
  };
  void send();

  static constexpr uint64_t kPauseUs = 20;

  Worker& worker_;
  const Topology topology_;
  StorageClient& storage_;
  std::vector<Freed> freed_;
  bool sending_ = false;
};

}  // namespace rdmacc
