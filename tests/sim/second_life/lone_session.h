#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/session.h"
#include "rdma/base/random.h"
#include "tests/workloads/read_either.h"
#include "tests/workloads/write_either.h"

namespace rdmacc {

// A session that has a table to itself and knows what is in it: every operation must give exactly
// what a map would. No row is busy and no transaction loses, but to a node that splits a group at
// that moment. Beside others neither can be judged: any loss and any "busy" may be theirs.
class LoneSession {
 public:
  LoneSession(Session& session, const TxnOptions& txn, TableId table, uint64_t seed);

  // From a coroutine, while nothing else runs. Not ok: a transaction came to no proper end. An
  // empty violation: all was as it should be.
  Status run(uint32_t transactions, std::string& violation);

 private:
  struct Own {
    std::string key;
    uint32_t command, level;
    std::optional<std::string> row;  // none: deleted
  };
  using Rows = std::map<std::string, std::string, std::less<>>;

  Status learn();
  void add_twins();
  Status look_at_tables();
  Status fill_segments();
  Status attempt();
  Status operate();
  Status read(const std::string& key);
  Status read_many();
  Status write(const std::string& key);
  Status insert_unchecked();
  Status lock(const std::string& key);
  Status scan(bool writes);
  Status hint(const std::string& key);
  void savepoints();
  Status end();
  Status look_at_locks(std::string_view key, bool held);
  Status compare_all();

  const std::string* visible(const std::string& key, uint32_t before) const;
  Rows all_visible(uint32_t before) const;
  static constexpr const char* kInBatch = "read_batch";  // which keeps nothing of the key
  const char* how(std::span<const std::string_view> keys) const {
    return reads_in_batch(table_, keys) ? kInBatch : "get_many";
  }
  void check_view(const std::string& key, uint32_t before, const RowView& view, const char* what);
  void expect(bool holds, const std::string& what);
  const std::string& draw_key();
  std::string draw_row(const std::string& key);
  uint32_t draw_before();

  Session& session_;
  const TxnOptions txn_;
  const bool in_order_;
  const TableId table_;
  Random random_;
  ReadBatch read_batch_;
  Rows rows_;  // committed
  std::vector<std::string> keys_;
  std::vector<Own> own_;  // of the transaction under way
  std::set<std::string> touched_;
  uint32_t command_ = 0, level_ = 0;
  uint64_t last_number_ = 0;
  uint32_t left_out_ = 0;  // scans in a row that have left out rows which a node held
  std::string violation_;
};

}  // namespace rdmacc
