#pragma once
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "engine/node/node_thread.h"

namespace rdmacc {

// A whole node in one process: thread 0 on the caller's thread, the others on threads of their
// own. For rdmacc_node and rdmacc_bench; the simulator uses NodeThread.
class Node {
 public:
  // When it has returned the node's storage is formatted and thread 0 serves as soon as run() does.
  static Result<std::unique_ptr<Node>> open(Fabric& fabric, NodeId node,
                                            const NodeOptions& options);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Serves until `stop` is set (looked at between two waits of the fabric), a thread could not be
  // started, or the other members took the node for dead (kUnavailable, and evicted()): they have
  // ended what they did with it, so it must be opened anew, as after a crash. kCorrupt with
  // kDiscardMemory: without its memory.
  Status run(const std::atomic<bool>& stop, uint32_t spin_us);

  bool evicted() const;
  // Calls it once, in the first step in which the node has its rows.
  void when_serving(std::function<void()> then);
  NodeThread& first() const { return *first_; }

 private:
  Node(Fabric& fabric, NodeId node, const NodeOptions& options)
      : fabric_(fabric), node_(node), options_(options) {}

  Status serve_thread(uint16_t thread, uint32_t spin_us);

  Fabric& fabric_;
  const NodeId node_;
  const NodeOptions options_;
  std::unique_ptr<NodeThread> first_;
  std::atomic<bool> stop_others_{false};
  std::atomic<bool> failed_{false};
};

}  // namespace rdmacc
