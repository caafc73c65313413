#pragma once
#include <functional>
#include <map>
#include <vector>

#include "engine/log/log_entry.h"
#include "engine/log/log_record.h"
#include "engine/storage/layout/region_layout.h"

namespace rdmacc {

// The entries of the log rings in a node's own region, read in place, and which of them its log
// file has: a checkpoint must not leave out those that are not installed yet.
//
// The node's thread 0 alone; no method yields.
class RingEntries {
 public:
  RingEntries(const std::byte* region, const RegionLayout& layout, NodeId node)
      : region_(region), layout_(layout), node_(node) {}

  struct Entry {
    std::vector<std::byte> payload;
    bool prepared = false;  // and not committed
  };
  // The entry at that position of a worker's ring; kInvalidArgument: there is none.
  Status read(WorkerId worker, uint64_t position, Entry& entry) const;

  // Where the ring has the committed entry of a transaction.
  std::optional<uint64_t> find(WorkerId worker, uint64_t lock_ctts) const;

  // The log file has it.
  void note_logged(WorkerId worker, uint64_t position);
  // Visits the log records of noted entries that may not be installed yet; forgets the others.
  void for_each_logged(const std::function<void(const LogRecord&, bool prepared)>& visit);
  // Notes the entries of these transactions, after a start of the node on its memory.
  void adopt(const std::function<bool(uint64_t lock_ctts)>& logged);

  // Does the transaction still hold the lock of that header, which is this node's?
  bool locked_by(GlobalAddress header, uint64_t lock_ctts) const;

 private:
  LogRingHead head_of(WorkerId worker) const;
  std::span<const std::byte> ring_of(WorkerId worker) const;

  const std::byte* const region_;
  const RegionLayout layout_;
  const NodeId node_;
  std::map<WorkerId, std::vector<uint64_t>> logged_;  // positions
};

}  // namespace rdmacc
