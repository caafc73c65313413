#pragma once
#include <memory>
#include <span>

#include "engine/storage/wire/loaded_rows.h"
#include "rdma/rpc/worker.h"

namespace rdmacc {

// Rows on their way into a table: the nodes put them in place while the worker goes on.
class PostedLoad {
 public:
  // Copies the rows into messages, of each node several, so that it begins with the first one.
  // From a coroutine, which does not yield.
  PostedLoad(Worker& worker, const Topology& topology, const LoadedRows& load,
             std::span<const RowToLoad> rows, VerbCounters& counters);
  // Of one that is under way only if the worker is not stepped any more.
  ~PostedLoad();
  PostedLoad(const PostedLoad&) = delete;
  PostedLoad& operator=(const PostedLoad&) = delete;

  bool under_way() const;
  // Yields until all messages have been answered.
  void await();
  // After that. kDuplicateKey: *duplicate is one whose key exists, and those before it on its node
  // are in place. After any other error some are.
  Status result(size_t* duplicate) const;

 private:
  struct Messages;
  Worker& worker_;
  std::unique_ptr<Messages> messages_;
};

}  // namespace rdmacc
