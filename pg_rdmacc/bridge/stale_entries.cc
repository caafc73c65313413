#include "pg_rdmacc/bridge/stale_entries.h"

#include <vector>

#include "engine/index/index_scan.h"
#include "rdma/base/check.h"

namespace rdmacc::bridge {
namespace {

// The key and its length; empty if the entry is too short to have one.
std::string_view row_of(std::string_view entry) {
  constexpr size_t kLengthBytes = 2;
  if (entry.size() < kLengthBytes) return {};
  const auto high = static_cast<uint8_t>(entry[entry.size() - 2]);
  const auto low = static_cast<uint8_t>(entry[entry.size() - 1]);
  const size_t bytes = (size_t{high} << 8 | low) + kLengthBytes;
  return bytes <= entry.size() ? entry.substr(entry.size() - bytes) : std::string_view();
}

}  // namespace

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
