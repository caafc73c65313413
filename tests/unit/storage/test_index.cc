#include "test_index.h"

#include <cstring>

namespace rdmacc {

namespace {
constexpr int kTries = 100'000;
constexpr uint64_t kBackOffUs = 3;
constexpr uint64_t kAwayUs = 20;

std::string bytes_of(uint64_t key) { return {reinterpret_cast<const char*>(&key), sizeof(key)}; }
}  // namespace

uint64_t TestIndex::hash_of(uint64_t key) const { return hash_key(table_.id, bytes_of(key)); }

NodeId TestIndex::node_of(uint64_t key) const {
  return static_cast<NodeId>(partition_of(hash_of(key)) % topology_.nodes);
}

Status TestIndex::fetch(GlobalAddress from, void* into, size_t bytes) {
  VerbArena arena(coordinator_.worker.pool());
  std::byte* local = arena.allocate(bytes);
  DoorbellBatch batch(coordinator_.worker.scheduler(), coordinator_.worker.counters());
  batch.read(from, local, bytes);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  std::memcpy(into, local, bytes);
  return Status();
}

Result<GlobalAddress> TestIndex::group_of(uint64_t hash, NodeId node) {
  const uint64_t at = coordinator_.layout.directory_entry(table_.id);
  for (int i = 0; i < kTries; ++i) {
    DirectoryEntry entry, again;
    uint64_t group = 0;
    RDMACC_RETURN_IF_ERROR(fetch(GlobalAddress::make(node, at), &entry, sizeof(entry)));
    if (entry.id != table_.id || entry.state != TableState::kLive) {
      return Status(Code::kNotFound, "table");
    }
    const IndexRoot root{entry.root};
    const uint64_t slot = root.offset() + 8 * group_bits_of(hash, root.depth());
    RDMACC_RETURN_IF_ERROR(fetch(GlobalAddress::make(node, slot), &group, 8));
    RDMACC_RETURN_IF_ERROR(fetch(GlobalAddress::make(node, at), &again, sizeof(again)));
    if (again.root == entry.root && again.id == entry.id) return GlobalAddress::make(node, group);
  }
  return Status(Code::kTimeout, "root");
}

Status TestIndex::look(uint64_t key, uint64_t locked_by, Place* place) {
  const uint64_t hash = hash_of(key);
  *place = Place{};
  Result<GlobalAddress> group = group_of(hash, node_of(key));
  if (!group.ok()) return group.status();
  place->group = *group;
  VerbArena arena(coordinator_.worker.pool());
  auto* gaps = arena.allocate_array<Header>(2);
  auto* bucket = arena.allocate_array<Bucket>(1);
  auto* slot = arena.allocate_array<Header>(1);
  const NodeId node = group->node();
  uint64_t at = bucket_offset(group->offset(), home_bucket_of(hash));
  for (uint32_t length = 0; at != 0 && length < 10'000; ++length) {
    DoorbellBatch batch(coordinator_.worker.scheduler(), coordinator_.worker.counters());
    if (length == 0) batch.read(*group, &gaps[0], sizeof(Header));
    batch.read(GlobalAddress::make(node, at), bucket, sizeof(Bucket));
    batch.read(*group, &gaps[1], sizeof(Header), WordOrder::kDescending);
    RDMACC_RETURN_IF_ERROR(batch.execute());
    for (uint32_t i = 0; i < kEntriesPerBucket; ++i) {
      const uint64_t entry = bucket->entries[i];
      if (entry == 0 && place->empty_entry == 0) place->empty_entry = at + 8 * i;
      if (entry == 0 || entry_tag(entry) != tag_of(hash)) continue;
      batch.read(GlobalAddress::make(node, entry_offset(entry)), slot, sizeof(Header));
      RDMACC_RETURN_IF_ERROR(batch.execute());
      if (slot->key_hash != hash || slot->table != table_.id) continue;
      if ((slot->flags & kFlagLive) == 0) continue;
      place->slot = entry_offset(entry);
      place->slot_entry = at + 8 * i;
    }
    at = bucket->next;
  }
  const auto good = [&](const Header& gap) {
    return gap.lock == locked_by && gap.table == table_.id && (gap.flags & kFlagGap) != 0 &&
           group_bits_of(hash, gap.length) == gap.key_hash;
  };
  place->gap = gaps[1];
  place->stable = good(gaps[0]) && good(gaps[1]) && gaps[0].wts == gaps[1].wts &&
                  gaps[0].incarnation == gaps[1].incarnation;
  return Status();
}

Result<GlobalAddress> TestIndex::find(uint64_t key) {
  AnnouncedEpoch epoch(coordinator_);
  Place place;
  for (int i = 0; i < kTries; ++i) {
    RDMACC_RETURN_IF_ERROR(look(key, 0, &place));
    if (place.slot != 0) return GlobalAddress::make(place.group.node(), place.slot);
    if (place.stable) return GlobalAddress{};
    coordinator_.worker.scheduler().sleep_for(kBackOffUs);
  }
  return Status(Code::kTimeout, "find");
}

Status TestIndex::locate_and_lock(uint64_t key, uint64_t ctts, Place* place) {
  VerbArena arena(coordinator_.worker.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  for (int i = 0; i < kTries; ++i) {
    Result<GlobalAddress> group = group_of(hash_of(key), node_of(key));
    if (!group.ok()) return group.status();
    DoorbellBatch batch(coordinator_.worker.scheduler(), coordinator_.worker.counters());
    batch.compare_swap(group->plus(kOffsetOfLock), 0, ctts, seen);
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if (*seen == 0) {
      const Status status = look(key, ctts, place);
      if (status.ok() && place->stable && place->group == *group) return Status();
      unlock(*group, ctts);
      RDMACC_RETURN_IF_ERROR(status);
    }
    coordinator_.worker.scheduler().sleep_for(kBackOffUs);
  }
  return Status(Code::kTimeout, "lock");
}

void TestIndex::unlock(GlobalAddress header, uint64_t ctts) {
  VerbArena arena(coordinator_.worker.pool());
  auto* seen = arena.allocate_array<uint64_t>(1);
  DoorbellBatch batch(coordinator_.worker.scheduler(), coordinator_.worker.counters());
  batch.compare_swap(header.plus(kOffsetOfLock), ctts, 0, seen);
  CHECK(batch.execute().ok());
}

Status TestIndex::make_room(uint64_t key, uint64_t ctts, Place* place) {
  const uint32_t bucket = home_bucket_of(hash_of(key));
  while (place->empty_entry == 0) {
    Status status = coordinator_.client.extend_bucket(place->group, bucket, 1, ctts,
                                                      coordinator_.worker.counters());
    if (status.ok()) status = look(key, ctts, place);
    if (status.code() == Code::kUnavailable) {  // the node starts again
      coordinator_.worker.scheduler().sleep_for(kAwayUs);
      continue;
    }
    RDMACC_RETURN_IF_ERROR(status);
  }
  return Status();
}

void TestIndex::link(const Place& place, GlobalAddress slot, uint64_t key, uint64_t ctts) {
  VerbArena arena(coordinator_.worker.pool());
  auto* words = arena.allocate_array<uint64_t>(8);
  const uint64_t record[2] = {8 | (key << 32), key >> 32};
  words[0] = ctts;
  words[1] = pack_words(12, kFlagLive);
  words[2] = record[0];
  words[3] = record[1];
  words[4] = 0;
  words[5] = make_entry(hash_of(key), slot.offset());
  DoorbellBatch batch(coordinator_.worker.scheduler(), coordinator_.worker.counters());
  batch.write(slot.plus(kOffsetOfWts), &words[0], 8);
  batch.write(slot.plus(kOffsetOfLength), &words[1], 8);
  batch.write(slot.plus(kOffsetOfRecord), &words[2], 16);
  batch.write(slot.plus(kOffsetOfLock), &words[4], 8);
  batch.write(place.group.plus(kOffsetOfWts), &words[0], 8);
  batch.write(GlobalAddress::make(slot.node(), place.empty_entry), &words[5], 8);
  batch.write(place.group.plus(kOffsetOfLock), &words[4], 8);
  CHECK(batch.execute().ok());
}

Status TestIndex::insert(uint64_t key) {
  AnnouncedEpoch epoch(coordinator_);
  VerbCounters& counters = coordinator_.worker.counters();
  StorageClient::SlotRequest request{};
  request.table = table_.id;
  request.key_hash = hash_of(key);
  request.node = node_of(key);
  uint64_t ctts = 0;
  Status status;
  do {
    ctts = coordinator_.next_ctts();
    status = coordinator_.client.allocate(std::span(&request, 1), ctts, counters);
    if (status.code() == Code::kUnavailable) coordinator_.worker.scheduler().sleep_for(kAwayUs);
  } while (status.code() == Code::kUnavailable);
  RDMACC_RETURN_IF_ERROR(status);
  Place place;
  status = locate_and_lock(key, ctts, &place);
  if (status.ok() && place.slot != 0) status = Status(Code::kDuplicateKey, "key");
  if (status.ok()) status = make_room(key, ctts, &place);
  if (status.ok()) {
    link(place, request.slot, key, ctts);
    return status;
  }
  if (!place.group.null()) unlock(place.group, ctts);
  const StorageClient::FreeRequest unused{request.slot, FreeKind::kSlot};
  static_cast<void>(coordinator_.client.free(std::span(&unused, 1), ctts, counters));
  return status;
}

Status TestIndex::erase(uint64_t key) {
  AnnouncedEpoch epoch(coordinator_);
  const uint64_t ctts = coordinator_.next_ctts();
  Place place;
  RDMACC_RETURN_IF_ERROR(locate_and_lock(key, ctts, &place));
  if (place.slot == 0) {
    unlock(place.group, ctts);
    return Status(Code::kNotFound, "key");
  }
  const GlobalAddress slot = GlobalAddress::make(place.group.node(), place.slot);
  Header header;
  RDMACC_RETURN_IF_ERROR(fetch(slot, &header, sizeof(header)));
  VerbArena arena(coordinator_.worker.pool());
  auto* words = arena.allocate_array<uint64_t>(4);
  words[0] = ctts;
  words[1] = 0;
  words[2] = pack_words(header.table, header.incarnation + 1);
  DoorbellBatch batch(coordinator_.worker.scheduler(), coordinator_.worker.counters());
  batch.write(slot.plus(kOffsetOfWts), &words[0], 8);
  batch.write(slot.plus(kOffsetOfLength), &words[1], 8);
  batch.write(slot.plus(kOffsetOfIdentity), &words[2], 8);
  batch.write(place.group.plus(kOffsetOfWts), &words[0], 8);
  batch.write(GlobalAddress::make(slot.node(), place.slot_entry), &words[1], 8);
  batch.write(place.group.plus(kOffsetOfLock), &words[1], 8);
  RDMACC_RETURN_IF_ERROR(batch.execute());
  const StorageClient::FreeRequest freed{slot, FreeKind::kSlot};
  // Lost with a node that died: the slot leaks until the node is opened again.
  static_cast<void>(
      coordinator_.client.free(std::span(&freed, 1), ctts, coordinator_.worker.counters()));
  return Status();
}

}  // namespace rdmacc
