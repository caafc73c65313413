#pragma once
#include <deque>
#include <functional>
#include <memory_resource>
#include <unordered_map>

#include "engine/protocols/calvin/order_area.h"
#include "engine/protocols/calvin/request.h"
#include "engine/txn/transaction/write_plan.h"

namespace rdmacc {

// Index entries that requests are going to set, by the offset of their home bucket.
using EntriesWanted = std::unordered_map<uint64_t, uint32_t>;

// One request at one of its participants: what this node stores of it. Used by one coroutine, which
// looks once all earlier requests that write its keys here are installed, and applies one request
// at a time, in their order: nothing that look() has found of the keys changes before apply().
class LocalPart {
 public:
  // `stage` has the request's stamp as its ctts; both outlive this.
  LocalPart(StageContext& stage, const OrderArea& area, NodeId node, const OrderedRequest& request);

  // Looks at the keys that this node stores and, of a request that is checked, says whether
  // everything it has read is still so. kNotFound: a table is gone. kUnavailable: look again.
  Status look(LocalVerdict& verdict);
  bool looked() const { return looked_; }
  // Slots and blocks for the local ones of `writes`. What was got is kept until apply(), or given
  // back when this goes.
  Status make_room(const std::vector<OrderedWrite>& writes);
  bool has_room() const { return has_room_; }
  // Empty entries in the index for what room was made for, beside those that earlier requests are
  // still going to set: `wanted` has these, and gets the own ones.
  Status make_entry_room(EntriesWanted& wanted);
  // Installs them, once: the redo record is stored before, so that a restarted node that finds it
  // ends what was begun. Errors (no memory, another node away, a group that split) leave nothing
  // changed but locks of the request's own: give_back(), and begin again.
  Status apply();
  // Gives back what make_room() got and nothing uses, and locks that a failed apply() has taken.
  void give_back();

 private:
  // A key of this node, with what was found of it.
  struct LocalKey {
    OrderedRead name;
    uint64_t hash = 0;
    KeyWork work{};
  };

  LocalKey* touch(TableId table, const std::string& key);
  Status check(LocalVerdict& verdict);
  bool group_unchanged(const OrderedGroup& group) const;
  bool for_each_entry(uint64_t group, uint32_t home,
                      const std::function<bool(uint64_t entry)>& visit) const;
  void add_write(const OrderedWrite& write);
  Status extend(Access& gap, uint32_t home, uint32_t entries);
  void unlock();
  void release(std::span<const Held> held);
  Access* share_gap(const Access& gap);
  Status find_gaps();

  StageContext& stage_;
  const OrderArea& area_;
  const NodeId node_;
  const OrderedRequest& request_;
  std::deque<LocalKey> keys_;
  std::unordered_map<std::string, LocalKey*> key_of_;
  std::pmr::monotonic_buffer_resource memory_;
  WritePlan::Accesses accesses_{&memory_};  // that are written
  std::unordered_map<uint64_t, Access*> gap_of_;
  WritePlan writes_;
  bool looked_ = false, has_room_ = false;
};

}  // namespace rdmacc
