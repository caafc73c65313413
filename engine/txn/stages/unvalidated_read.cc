#include "engine/txn/stages/unvalidated_read.h"

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

UnvalidatedReadCache::Entries::iterator* UnvalidatedReadCache::locate(TableId table,
                                                                      std::string_view key) {
  const auto place = places_.find(hash_key(table, key));
  if (place == places_.end()) return nullptr;
  const Entry& entry = *place->second;
  return entry.table == table && entry.key == key ? &place->second : nullptr;
}

const std::string* UnvalidatedReadCache::find(TableId table, std::string_view key) {
  const Entries::iterator* place = locate(table, key);
  if (place == nullptr) return nullptr;
  entries_.splice(entries_.begin(), entries_, *place);
  return &entries_.front().row;
}

void UnvalidatedReadCache::put(TableId table, std::string_view key, std::string_view row) {
  if (entries_max_ == 0) return;
  const uint64_t hash = hash_key(table, key);
  const auto place = places_.find(hash);
  if (place != places_.end()) {
    entries_.splice(entries_.begin(), entries_, place->second);
  } else if (entries_.size() < entries_max_) {
    entries_.emplace_front();
  } else {
    const Entry& oldest = entries_.back();
    places_.erase(hash_key(oldest.table, oldest.key));
    entries_.splice(entries_.begin(), entries_, std::prev(entries_.end()));
  }
  Entry& entry = entries_.front();
  CHECK(entries_.size() <= entries_max_);
  entry.table = table;
  entry.key = key;
  entry.row = row;
  places_[hash] = entries_.begin();
}

void UnvalidatedReadCache::forget(TableId table, std::string_view key) {
  const Entries::iterator* place = locate(table, key);
  if (place == nullptr) return;
  CHECK(places_.size() == entries_.size());
  entries_.erase(*place);
  places_.erase(hash_key(table, key));
}

}  // namespace rdmacc
