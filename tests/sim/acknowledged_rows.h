#pragma once
#include <map>
#include <span>

#include "engine/check/history_file.h"
#include "engine/session.h"

namespace rdmacc {

// What a history says that tables have at its end: for each key the version that the last committed
// write made, or that it was deleted. Serializability alone does not tell that a row is found: a
// reader that misses it may stand before the insert. At rest every key is looked up and every table
// is scanned, and both must give exactly these rows, in these versions.
class AcknowledgedRows {
 public:
  // A history in which outcomes are settled as far as they are known.
  explicit AcknowledgedRows(const std::vector<HistoryTransaction>& history);

  // One attempt; an empty violation: all is there, and nothing else.
  Status check(Session& session, const TxnOptions& options, std::span<const TableId> tables,
               std::string& violation) const;

  uint64_t live_rows(TableId table) const;
  std::vector<std::string_view> live_keys(TableId table) const;

 private:
  struct Last {
    uint64_t version = 0;
    bool live = false;
    bool outcome_unknown = false;  // a transaction of unknown outcome wrote it, too
  };
  using Rows = std::map<std::string, Last, std::less<>>;

  static std::string compare(const std::string& key, const Last& expected, bool found,
                             uint64_t version, const char* by);
  static Status look_up(Session& session, TableId table, const Rows& rows, std::string& violation);
  static Status scan(Session& session, TableId table, const Rows& rows, std::string& violation);

  std::map<TableId, Rows> tables_;
};

}  // namespace rdmacc
