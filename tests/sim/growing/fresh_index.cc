#include "tests/sim/growing/fresh_index.h"

#include "engine/index/index_loader.h"
#include "engine/index/index_scan.h"

namespace rdmacc {
namespace {

constexpr size_t kDigits = 6, kFillerBytes = 60;
constexpr uint64_t kEntriesPerLoad = 40;

std::string entry(uint64_t number) {
  const std::string text = std::to_string(number);
  return std::string(kDigits - text.size(), '0') + text + std::string(kFillerBytes, '.');
}

}  // namespace

Status fill_index(Session& session, TableId index, uint64_t entries) {
  const bool in_place = session.may_load() && !session.has_met(index);
  IndexLoader loader(session, IndexRef{index}, in_place);
  for (uint64_t i = 0; i < entries; ++i) {
    RDMACC_RETURN_IF_ERROR(loader.add(entry(i)));
    if (in_place && i % kEntriesPerLoad == 0) RDMACC_RETURN_IF_ERROR(loader.put_in_place());
  }
  RDMACC_RETURN_IF_ERROR(loader.finish());
  return in_place ? loader.put_in_place() : Status();
}

Status read_index(Session& session, TableId index, uint64_t entries, std::string& doubt) {
  IndexScan cursor;
  cursor.seek(IndexRef{index}, IndexRange{}, false);
  uint64_t number = 0;
  std::vector<std::string_view> batch;
  do {
    RDMACC_RETURN_IF_ERROR(cursor.next(session, batch));
    for (const std::string_view each : batch) {
      if (each != entry(number)) doubt = "entry " + std::to_string(number) + " of a fresh index";
      ++number;
    }
  } while (!batch.empty());
  if (number != entries) doubt = "a fresh index has " + std::to_string(number) + " entries";
  return Status();
}

}  // namespace rdmacc
