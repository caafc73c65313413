#include "engine/check/key_histories.h"

#include <algorithm>
#include <map>

#include "engine/check/history_file.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

bool names_a_key(const HistoryEvent& event) { return event.op != HistoryOp::kScan; }

bool is_write(const HistoryEvent& event) {
  return event.op == HistoryOp::kWrite || event.op == HistoryOp::kInsert ||
         event.op == HistoryOp::kDelete;
}

}  // namespace

KeyHistories::KeyHistories(std::span<const HistoryTransaction> history,
                           const std::vector<bool>& counts) {
  CHECK(counts.size() == history.size());
  number_keys(history, counts);
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
    history.hash = hash_key(table, key);
    keys_of_table_[table].push_back(at->second);
  }
  return at->second;
}

// All keys are known before the first scan is looked at: a scan misses keys inserted later, too.
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

void KeyHistories::add_transaction(uint32_t number, const HistoryTransaction& transaction) {
  bool scans = false;
  for (const HistoryEvent& event : transaction.events) {
    if (!names_a_key(event)) {
      scans = true;
      continue;
    }
    const uint32_t key = number_of(event.table, event.key);
    if (event.op == HistoryOp::kMiss) {
      keys_[key].misses.push_back({event.version, number});
      continue;
    }
    touched_by_[key] = number + 1;
    if (is_write(event)) {
      add_write(number, key, event);
    } else {
      keys_[key].reads.push_back({event.version, number});
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

// Every key of a scanned group that the transaction neither read nor wrote itself was missed.
void KeyHistories::add_scan(uint32_t number, const HistoryEvent& scan) {
  struct Depth {
    std::map<std::pair<uint64_t, NodeId>, uint64_t> stamps;  // by (bits, node)
  };
  std::map<uint32_t, Depth> depths;  // few: the groups of a table differ by a split or two
  for (const ScannedGroup& group : scan.groups) {
    depths[group.depth].stamps[{group.bits, group.node}] = group.stamp;
  }
  const auto keys = keys_of_table_.find(scan.table);
  if (keys == keys_of_table_.end()) return;
  for (const uint32_t k : keys->second) {
    if (touched_by_[k] == number + 1) continue;
    const uint64_t hash = keys_[k].hash;
    const auto node = static_cast<NodeId>(partition_of(hash) % nodes_);
    for (const auto& [depth, groups] : depths) {
      const auto group = groups.stamps.find({group_bits_of(hash, depth), node});
      if (group != groups.stamps.end()) keys_[k].misses.push_back({group->second, number});
    }
  }
}

std::string describe_key(const KeyHistory& key) {
  return "t" + std::to_string(key.table) + "/" + printable_key(key.key);
}

}  // namespace rdmacc
