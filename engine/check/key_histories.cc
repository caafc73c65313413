#include "engine/check/key_histories.h"

#include <algorithm>

#include "engine/check/history_file.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

bool names_a_key(const HistoryEvent& event) { return event.op != HistoryOp::kScan; }

uint64_t reverse_bits(uint64_t word) {
  constexpr uint64_t kOdd = 0x5555555555555555, kPairs = 0x3333333333333333,
                     kNibbles = 0x0F0F0F0F0F0F0F0F;
  word = ((word >> 1) & kOdd) | ((word & kOdd) << 1);
  word = ((word >> 2) & kPairs) | ((word & kPairs) << 2);
  word = ((word >> 4) & kNibbles) | ((word & kNibbles) << 4);
  return __builtin_bswap64(word);
}

}  // namespace

KeyHistories::KeyHistories(std::span<const HistoryTransaction> history,
                           const std::vector<bool>& counts) {
  CHECK(counts.size() == history.size());
  number_keys(history, counts);
  place_keys();
  touched_by_.assign(keys_.size(), 0);
  for (uint32_t t = 0; t < history.size(); ++t) {
    if (counts[t]) add_transaction(t, history[t]);
  }
  for (KeyHistory& key : keys_) {
    std::stable_sort(key.events.begin(), key.events.end(),
                     [](const KeyEvent& a, const KeyEvent& b) { return a.stamp < b.stamp; });
  }
}

const KeyHistory* KeyHistories::find(TableId table, std::string_view key) const {
  const auto found = numbers_.find({table, key});
  return found == numbers_.end() ? nullptr : &keys_[found->second];
}

uint32_t KeyHistories::number_of(TableId table, std::string_view key) {
  const auto [at, fresh] = numbers_.try_emplace({table, key}, static_cast<uint32_t>(keys_.size()));
  if (fresh) {
    KeyHistory& history = keys_.emplace_back();
    history.table = table;
    history.key = key;
  }
  return at->second;
}

// All keys are known before the first scan is judged: a scan misses keys inserted later, too.
void KeyHistories::number_keys(std::span<const HistoryTransaction> history,
                               const std::vector<bool>& counts) {
  for (uint32_t t = 0; t < history.size(); ++t) {
    for (const HistoryEvent& event : history[t].events) {
      if (counts[t] && names_a_key(event)) number_of(event.table, event.key);
      for (const ScannedGroup& group : event.groups) {
        nodes_ = std::max(nodes_, static_cast<NodeId>(group.node + 1));
      }
    }
  }
}

void KeyHistories::place_keys() {
  if (nodes_ == 0) return;  // the history has no scans
  for (uint32_t k = 0; k < keys_.size(); ++k) {
    const uint64_t hash = hash_key(keys_[k].table, keys_[k].key);
    const auto node = static_cast<NodeId>(partition_of(hash) % nodes_);
    keys_of_table_[keys_[k].table].push_back({node, reverse_bits(hash), k});
  }
  for (auto& [table, keys] : keys_of_table_) std::sort(keys.begin(), keys.end());
}

void KeyHistories::add_transaction(uint32_t number, const HistoryTransaction& transaction) {
  bool scans = false;
  for (const HistoryEvent& event : transaction.events) {
    if (!names_a_key(event)) {
      scans = true;
      continue;
    }
    const uint32_t key = number_of(event.table, event.key);
    touched_by_[key] = number + 1;
    if (event.op == HistoryOp::kMiss) {
      keys_[key].misses.push_back({event.version, number});
    } else if (event.op == HistoryOp::kRead) {
      // What it has loaded itself before it commits is read like any row, and tells nothing new.
      const std::vector<KeyEvent>& events = keys_[key].events;
      const bool own =
          !events.empty() && events.back().txn == number && events.back().stamp == event.version;
      if (!own) keys_[key].reads.push_back({event.version, number});
    } else {
      add_write(number, key, event);
    }
  }
  if (!scans) return;
  for (const HistoryEvent& event : transaction.events) {
    if (event.op == HistoryOp::kScan) add_scan(number, event);
  }
}

// Operations of one transaction on one key become one event: the first says what it needs, the
// last what it leaves. An insert that the same transaction deletes again leaves nothing.
void KeyHistories::add_write(uint32_t number, uint32_t key, const HistoryEvent& event) {
  std::vector<KeyEvent>& events = keys_[key].events;
  const bool live_after = event.op != HistoryOp::kDelete;
  if (!events.empty() && events.back().txn == number) {
    events.back().live_after = live_after;
    events.back().stamp = event.version;
    if (!events.back().needs_live && !live_after) events.pop_back();
    return;
  }
  events.push_back({.stamp = event.version,
                    .txn = number,
                    .needs_live = event.op != HistoryOp::kInsert,
                    .live_after = live_after});
}

// Every key of a scanned group that the transaction did not look up or write itself was missed.
// Its own look-up says more: a row that is there, or one whose delete left the gap's stamp alone.
void KeyHistories::add_scan(uint32_t number, const HistoryEvent& scan) {
  const auto found = keys_of_table_.find(scan.table);
  if (found == keys_of_table_.end()) return;
  const std::vector<Placed>& keys = found->second;
  for (const ScannedGroup& group : scan.groups) {
    const uint64_t first = reverse_bits(group.bits);
    const uint64_t last = group.depth == 0 ? ~0ull : first | (~0ull >> group.depth);
    auto at = std::lower_bound(keys.begin(), keys.end(), Placed{group.node, first, 0});
    for (; at != keys.end() && at->node == group.node && at->reversed_hash <= last; ++at) {
      if (touched_by_[at->key] == number + 1) continue;
      keys_[at->key].misses.push_back({group.stamp, number, /*by_scan=*/true});
    }
  }
}

std::string describe_key(const KeyHistory& key) {
  return "t" + std::to_string(key.table) + "/" + printable_key(key.key);
}

}  // namespace rdmacc
