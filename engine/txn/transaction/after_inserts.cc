// What a commit's inserts leave to the owners of the index: groups that are to be split.

#include <algorithm>
#include <new>

#include "engine/txn/transaction/transaction.h"

namespace rdmacc {
namespace {

// How often to ask for 0.2 s: a load of a million rows takes the owners some seconds, and more on a
// machine that has others to serve, too.
int settle_rounds(size_t writes) {
  constexpr size_t kWritesARound = 10'000;
  return std::max(StorageClient::kSettleRounds, static_cast<int>(writes / kWritesARound));
}

}  // namespace

// Owners hear of full groups before inserts need room in them. A transaction waits for splits where
// they lag behind, or chains would grow and grow; and, if it relied on absences, for those that its
// worker has caused: the next transaction, often of the same session, may do so, too, and is not to
// lose to them. Then owners are told of some groups at a time, so that few transactions wait. The
// commit stands whatever becomes of this.
void Transaction::care_for_relinked_groups() try {
  FullGroups& full_groups = coordinator_.full_groups;
  const auto wait_from = scanned_ ? EntryWork::Room::kGrown : EntryWork::Room::kBehind;
  std::vector<NodeId> nodes;
  for (const LockWork& work : writes_.locks()) {
    if (work.entries == nullptr) continue;
    const GlobalAddress group = work.access->header;
    if (work.entries->room == EntryWork::Room::kFull) full_groups.note(group);
    if (work.entries->room >= wait_from &&
        std::find(nodes.begin(), nodes.end(), group.node()) == nodes.end()) {
      nodes.push_back(group.node());
    }
  }
  if (scanned_) {
    full_groups.settle();
  } else {
    full_groups.tell_soon();
  }
  if (nodes.empty()) return;
  static_cast<void>(coordinator_.engine.storage.wait_for_pending_splits(
      nodes, allocation_counters_, settle_rounds(writes_.locks().size()),
      StorageClient::kSplitPatience));
} catch (const std::bad_alloc&) {
  // Groups that were not noted cost later inserts their requests.
}

// As care_for_full_groups() does. The nodes do not say whether chains grew: few writes are not
// worth asking.
void Transaction::settle_after(std::span<const OrderedWrite> writes) {
  constexpr size_t kManyWrites = 64;
  if (writes.size() < kManyWrites) return;
  EngineContext& engine = coordinator_.engine;
  std::vector<bool> written(engine.map.nodes());
  for (const OrderedWrite& write : writes) {
    written[engine.map.primary_of(hash_key(write.table, write.key))] = true;
  }
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < written.size(); node++) {
    if (written[node]) nodes.push_back(node);
  }
  static_cast<void>(engine.storage.wait_for_pending_splits(
      nodes, allocation_counters_, settle_rounds(writes.size()), StorageClient::kSplitPatience));
}

}  // namespace rdmacc
