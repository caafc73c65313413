#pragma once
#include <memory>

#include "rdma/coroutine/doorbell_batch.h"
#include "rdma/coroutine/scheduler.h"
#include "rdma/fabric/memory_region.h"
#include "rdma/rpc/rpc.h"

namespace rdmacc {

// Everything that one thread needs of rdma/: its endpoint, event loop, RPC and registered
// memory. Built by node threads, bench threads, PostgreSQL backends and the simulator alike.
class Worker {
 public:
  explicit Worker(std::unique_ptr<Endpoint> endpoint, Scheduler::Options options = {})
      : endpoint_(std::move(endpoint)),
        scheduler_(*endpoint_, options),
        rpc_(scheduler_),
        pool_(*endpoint_) {}
  // Coroutines that are still suspended have buffers and calls here: they go first.
  ~Worker() { scheduler_.unwind(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  WorkerId id() const { return endpoint_->worker(); }
  Endpoint& endpoint() { return *endpoint_; }
  Scheduler& scheduler() { return scheduler_; }
  Rpc& rpc() { return rpc_; }
  RegisteredPool& pool() { return pool_; }
  VerbCounters& counters() { return counters_; }

 private:
  std::unique_ptr<Endpoint> endpoint_;
  Scheduler scheduler_;
  Rpc rpc_;
  RegisteredPool pool_;
  VerbCounters counters_;
};

}  // namespace rdmacc
