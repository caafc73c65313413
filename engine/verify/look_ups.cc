#include "engine/verify/look_ups.h"

#include <algorithm>

namespace rdmacc {

namespace {
constexpr uint32_t kAttemptsMax = 200;
constexpr uint32_t kAttemptsWithOthers = 8;  // before exclusive gate mode is asked for
constexpr uint64_t kRetryUs = 500;
constexpr size_t kKeysPerTransaction = 128;
constexpr size_t kKeysPerLine = 1'000'000;  // of progress
constexpr int kCountsMax = 4;

// No worker has had a transaction from one read of the lines to the other, but for `self`.
bool quiet(const std::vector<WorkerLine>& before, const std::vector<WorkerLine>& after,
           WorkerId self) {
  CHECK(before.size() == after.size());
  for (WorkerId worker = 0; worker < after.size(); ++worker) {
    if (worker == self) continue;
    const bool idle = before[worker].inside == 0 && after[worker].inside == 0 &&
                      before[worker].last_ctts == after[worker].last_ctts;
    if (!idle) return false;
  }
  return true;
}
}  // namespace

Status transact(Session& session, const VerifyOptions& options,
                const std::function<Status()>& body) {
  CHECK(!session.active() && body != nullptr);
  Status status;
  for (uint32_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (options.is_cancelled()) return Status(Code::kCancelled);
    if (attempt > 0) session.scheduler().sleep_for(kRetryUs * attempt);
    TxnOptions txn = options.txn;
    txn.exclusive = attempt >= kAttemptsWithOthers;
    RDMACC_RETURN_IF_ERROR(session.begin(txn));
    status = body();
    if (status.ok()) {
      status = session.commit();
    } else {
      session.abort();
    }
    if (status.code() != Code::kAborted) return status;
  }
  return status;
}

Status LookUpCheck::run(std::vector<Finding>& findings) {
  std::vector<NodeId> nodes;
  RDMACC_RETURN_IF_ERROR(scan_keys(keys_, &nodes));
  for (size_t i = 0; i < keys_.size(); ++i) {
    const NodeId home = home_node_of(table_, keys_[i], nodes_);
    if (nodes[i] == home) continue;
    add(fault_name(FaultKind::kWrongNode), keys_[i], nodes[i],
        "its place is on node " + std::to_string(home), findings);
  }
  std::sort(keys_.begin(), keys_.end());
  for (size_t i = 1; i < keys_.size(); ++i) {
    if (keys_[i] != keys_[i - 1]) continue;
    add(kFindingScannedTwice, keys_[i], home_node_of(table_, keys_[i], nodes_), "", findings);
  }
  std::vector<std::string> missing;
  RDMACC_RETURN_IF_ERROR(find_missing(missing));
  return missing.empty() ? Status() : confirm(missing, findings);
}

Status LookUpCheck::scan_keys(std::vector<std::string>& keys, std::vector<NodeId>* nodes) {
  return transact(session_, options_, [&] { return scan_in_transaction(keys, nodes); });
}

Status LookUpCheck::scan_in_transaction(std::vector<std::string>& keys,
                                        std::vector<NodeId>* nodes) {
  keys.clear();
  if (nodes != nullptr) nodes->clear();
  Result<ScanHandle> scan =
      session_.scan(table_, kEveryCommand, ScanMode::kSerializable, {.row_bytes_max = 0});
  if (!scan.ok()) return scan.status();
  std::vector<RowView> rows;
  do {
    if (options_.is_cancelled()) return Status(Code::kCancelled);
    RDMACC_RETURN_IF_ERROR(session_.scan_next(**scan, rows));
    for (const RowView& row : rows) {
      keys.emplace_back(row.key);
      if (nodes != nullptr) nodes->push_back(row.node);
      if (options_.progress && keys.size() % kKeysPerLine == 0) {
        options_.progress(std::to_string(keys.size()) + " rows scanned");
      }
    }
  } while (!rows.empty());
  return Status();
}

Status LookUpCheck::find_missing(std::vector<std::string>& missing) {
  for (size_t first = 0; first < keys_.size(); first += kKeysPerTransaction) {
    const size_t count = std::min(kKeysPerTransaction, keys_.size() - first);
    const std::span<const std::string> keys(keys_.data() + first, count);
    std::vector<std::string> absent;
    RDMACC_RETURN_IF_ERROR(transact(session_, options_, [&] { return look_up(keys, absent); }));
    missing.insert(missing.end(), absent.begin(), absent.end());
    if (options_.progress && (first + count) % kKeysPerLine < kKeysPerTransaction) {
      options_.progress(std::to_string(first + count) + " of " + std::to_string(keys_.size()) +
                        " rows looked up");
    }
  }
  return Status();
}

// Of the keys that a transaction is told to be absent.
Status LookUpCheck::look_up(std::span<const std::string> keys, std::vector<std::string>& missing) {
  missing.clear();
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<RowView> rows(keys.size());
  RDMACC_RETURN_IF_ERROR(session_.get_many(table_, views, rows));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!rows[i].found) missing.push_back(keys[i]);
  }
  return Status();
}

Status LookUpCheck::confirm(const std::vector<std::string>& missing,
                            std::vector<Finding>& findings) {
  std::vector<std::string> absent, scanned;
  std::vector<NodeId> nodes;
  const Status seen = transact(session_, options_, [&] {
    const Status looked_up = look_up(missing, absent);
    return looked_up.ok() ? scan_in_transaction(scanned, &nodes) : looked_up;
  });
  if (!seen.ok()) return seen;
  std::sort(absent.begin(), absent.end());
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (!std::binary_search(absent.begin(), absent.end(), scanned[i])) continue;
    add(kFindingNotFound, scanned[i], nodes[i], "a scan gives the row", findings);
  }
  return Status();
}

Result<uint64_t> LookUpCheck::audited_rows() {
  uint64_t rows = 0;
  for (NodeId node = 0; node < nodes_; ++node) {
    Result<AuditReport> report = session_.audit(node, table_);
    if (!report.ok()) return report.status();
    rows += report->rows;
  }
  return rows;
}

Status LookUpCheck::count(std::vector<Finding>& findings) {
  const WorkerId self = session_.scheduler().endpoint().worker();
  GateLine gate{};
  std::vector<WorkerLine> before, after;
  for (int i = 0; i < kCountsMax; ++i) {
    RDMACC_RETURN_IF_ERROR(session_.gate_state(&gate, &before));
    Result<uint64_t> audited = audited_rows();
    if (!audited.ok()) return audited.status();
    RDMACC_RETURN_IF_ERROR(session_.gate_state(&gate, &after));
    // The first scan was before: it gave them all, or others have come since.
    if (audited.value() == keys_.size() || !quiet(before, after, self)) return Status();
    RDMACC_RETURN_IF_ERROR(scan_keys(keys_, nullptr));
    RDMACC_RETURN_IF_ERROR(session_.gate_state(&gate, &after));
    if (!quiet(before, after, self) || audited.value() == keys_.size()) continue;
    add(kFindingNotScanned, "", 0,
        "a scan gives " + std::to_string(keys_.size()) + " rows of " +
            std::to_string(audited.value()),
        findings);
    return Status();
  }
  return Status();
}

void LookUpCheck::add(const char* kind, const std::string& key, NodeId node, std::string detail,
                      std::vector<Finding>& findings) const {
  Finding finding;
  finding.kind = kind;
  finding.table = table_;
  finding.node = node;
  finding.key = key;
  finding.detail = std::move(detail);
  findings.push_back(std::move(finding));
}

}  // namespace rdmacc
