#include "engine/txn/stages/unvalidated_read.h"

#include <utility>

#include "engine/txn/driver/driver.h"

namespace rdmacc {
namespace {

// The post-read says how long the record is. Any snapshot will do.
Step take_anything(const Access& /*access*/, const HeaderSnapshot* seen, const TxnStamps& /*txn*/) {
  return seen == nullptr ? Step::attempt(kUntornRead) : Step::done();
}

Step take_any_gap(const Header& /*before*/, const Header& /*after*/, const TxnStamps& /*txn*/) {
  return Step::done();
}

const ProtocolRules kUnvalidatedReadRules = {
    .protocol = Protocol{},
    .stages = 0,
    .read = driven_by<take_anything>,
    .read_gap = take_any_gap,
    .lock = {},
    .effects = {},
};

}  // namespace

Status unvalidated_read_key(const StageContext& context, TableId table, std::string_view key,
                            bool& found, std::string_view& row) {
  found = false;
  StageContext unvalidated = context.by(kUnvalidatedReadRules);
  KeyWork work = KeyWork::of(table, hash_key(table, key), key);
  const Status status = find_keys(unvalidated, std::span(&work, 1));
  // A reference to an overflow block that was torn may lead anywhere.
  if (status.code() == Code::kCorrupt) return Status();
  RDMACC_RETURN_IF_ERROR(status);
  std::string_view seen;
  found = work.result == KeyWork::Result::kFound && split_record(work.record, seen, row);
  return Status();
}

UnvalidatedReadCache::Entry* UnvalidatedReadCache::locate(TableId table, std::string_view key) {
  const auto place = places_.find(hash_key(table, key));
  if (place == places_.end()) return nullptr;
  Entry& entry = entries_[place->second];
  return entry.table == table && entry.key == key ? &entry : nullptr;
}

const std::string* UnvalidatedReadCache::find(TableId table, std::string_view key) {
  Entry* entry = locate(table, key);
  if (entry == nullptr) return nullptr;
  entry->used = true;
  return &entry->row;
}

// An entry that was used has another chance, once: the second round ends it.
size_t UnvalidatedReadCache::make_room() {
  CHECK(entries_max_ > 0 && entries_.size() <= entries_max_);
  if (entries_.size() < entries_max_) {
    entries_.emplace_back();
    return entries_.size() - 1;
  }
  for (;; next_++) {
    if (next_ >= entries_max_) next_ = 0;
    Entry& entry = entries_[next_];
    if (std::exchange(entry.used, false)) continue;
    places_.erase(hash_key(entry.table, entry.key));
    return next_;
  }
}

void UnvalidatedReadCache::put(TableId table, std::string_view key, std::string_view row) {
  if (entries_max_ == 0) return;
  const uint64_t hash = hash_key(table, key);
  const auto known = places_.find(hash);
  const size_t place = known != places_.end() ? known->second : make_room();
  Entry& entry = entries_[place];
  entry.table = table;
  entry.used = true;
  entry.key = key;
  entry.row = row;
  places_[hash] = place;
}

void UnvalidatedReadCache::forget(TableId table, std::string_view key) {
  Entry* entry = locate(table, key);
  if (entry == nullptr) return;
  CHECK(places_.size() == entries_.size());
  places_.erase(hash_key(table, key));
  if (entry != &entries_.back()) {
    *entry = std::move(entries_.back());
    places_[hash_key(entry->table, entry->key)] = static_cast<size_t>(entry - entries_.data());
  }
  entries_.pop_back();
}

}  // namespace rdmacc
