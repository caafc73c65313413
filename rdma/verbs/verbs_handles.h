#pragma once
#include <infiniband/verbs.h>
#include <unistd.h>

#include <atomic>
#include <memory>

// Objects of libibverbs that release themselves. An owner of several declares them in the order in
// which they were made: context, protection domain, channel, queues, queue pairs.

namespace rdmacc {

// The process that opened a device last. A child that inherits objects must leave them alone: the
// kernel's side of them is its parent's.
inline std::atomic<pid_t> verbs_process = 0;

struct VerbsDelete {
  template <typename T>
  void operator()(T* object) const {
    if (verbs_process.load(std::memory_order_relaxed) == getpid()) release(object);
  }

 private:
  static void release(ibv_context* object) { ibv_close_device(object); }
  static void release(ibv_pd* object) { ibv_dealloc_pd(object); }
  static void release(ibv_comp_channel* object) { ibv_destroy_comp_channel(object); }
  static void release(ibv_cq* object) { ibv_destroy_cq(object); }
  static void release(ibv_qp* object) { ibv_destroy_qp(object); }
  static void release(ibv_mr* object) { ibv_dereg_mr(object); }
  static void release(ibv_ah* object) { ibv_destroy_ah(object); }
};

template <typename T>
using VerbsHandle = std::unique_ptr<T, VerbsDelete>;

}  // namespace rdmacc
