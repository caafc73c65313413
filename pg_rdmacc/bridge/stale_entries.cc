#include "pg_rdmacc/bridge/stale_entries.h"

#include <vector>

#include "engine/index/index_scan.h"
#include "pg_rdmacc/bridge/entry_key.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

// Empty: it names none.
std::string_view row_of(std::string_view entry) {
  BridgeBytes key = {};
  const bool named = rdmacc_find_entry_key({entry.data(), entry.size()}, &key);
  return named ? std::string_view(key.data, key.size) : std::string_view();
}

}  // namespace

void MissingEntries::batch_missed(uint32_t index) { ++of_index_[index].batches; }

bool MissingEntries::suspects(uint32_t index) const {
  const auto found = of_index_.find(index);
  return found != of_index_.end() && found->second.batches > 1;
}

bool MissingEntries::is_stale(uint32_t index, std::string_view entry) {
  const auto found = of_index_.find(index);
  CHECK(found != of_index_.end());
  Missing& missing = found->second;
  missing.confirmed = missing.confirmed || missing.entry == entry;
  missing.entry = entry;
  return missing.confirmed;
}

Status remove_stale_entry(Session& session, const IndexRef& index, std::string_view computed) {
  const std::string_view row = row_of(computed);
  CHECK(!row.empty());
  IndexScan scan;
  scan.seek(index, {}, /*backward=*/false);
  for (;;) {
    std::vector<std::string_view> batch;
    RDMACC_RETURN_IF_ERROR(scan.next(session, batch));
    if (batch.empty()) return Status();  // it is in no entry
    for (const std::string_view entry : batch) {
      if (row_of(entry) != row) continue;
      const std::string found(entry);  // the batch ends with the next command
      return OrderedIndex(session, index).remove(found);
    }
  }
}

}  // namespace rdmacc::bridge
