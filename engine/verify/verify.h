#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/session.h"

// Whether tables are sound, found out read-only and beside whatever traffic there is: what amcheck
// is to PostgreSQL's indexes. From a coroutine, on a session without a transaction. No finding:
// sound, as far as the README says what is looked at. Not ok: it could not be found out; kNotFound:
// a table is not there (any more).

namespace rdmacc {

// Something that is wrong for certain.
struct Finding {
  std::string kind;  // a fault_name (engine/storage/wire/audit_message.h), or one of those below
  TableId table = kNoTable;
  NodeId node = 0;
  uint64_t offset = 0;  // of the header, the entry or the unit in the node's region; 0: none
  std::string key;      // bytes; empty: not of one key, or not known
  std::string detail;

  std::string to_string() const;
};

constexpr char kFindingLock[] = "lock";
constexpr char kFindingNotFound[] = "not found";          // by look-up, but by a scan
constexpr char kFindingNotScanned[] = "not scanned";      // by a scan, but linked where it belongs
constexpr char kFindingScannedTwice[] = "scanned twice";  // by one scan
constexpr char kFindingUnreadable[] = "unreadable";       // what a transaction was told
constexpr char kFindingTreeNode[] = "tree node";          // of an ordered index
constexpr char kFindingNoEntry[] = "no index entry";      // for a row
constexpr char kFindingNoRow[] = "no row";                // for an index entry
// Not sound in any pass, but locked in each, so that a change may have been half done.
constexpr char kFindingBusy[] = "busy";

struct VerifyOptions {
  TxnOptions txn;      // of the transactions that look keys up and scan
  bool units = false;  // also units of the nodes that no table leads to
  // How often what seems wrong is read, with pauses that grow.
  uint32_t passes_max = 24;
  uint64_t pause_us_max = 250'000;
  // Lines of progress, for a caller that shows them (empty: none).
  std::function<void(const std::string& line)> progress;
  // Asked now and then: true ends all with kCancelled.
  std::function<bool()> cancelled;

  bool is_cancelled() const { return cancelled && cancelled(); }
  uint64_t pause_us(uint32_t pass) const;
};

struct VerifyReport {
  std::vector<Finding> findings;
  uint64_t rows = 0;  // of the tables, as a scan had them
};

// options.units: and the units of all nodes that no table leads to.
Result<VerifyReport> verify_tables(Session& session, std::span<const TableToVerify> tables,
                                   const VerifyOptions& options);

std::string hex(std::string_view bytes);

}  // namespace rdmacc
