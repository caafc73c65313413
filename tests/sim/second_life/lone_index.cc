#include "tests/sim/second_life/lone_index.h"

#include <algorithm>

#include "engine/index/ordered_index.h"

namespace rdmacc {
namespace {

constexpr uint32_t kAttempts = 60;
constexpr uint64_t kPauseUs = 1'000;
constexpr uint64_t kChangesMax = 12;
constexpr uint64_t kLettersMax = 5, kTailMax = 150, kLongTailMax = 900;

}  // namespace

Status LoneIndex::turn(Session& session) {
  Status status;
  const Random drawn = random_;  // every attempt is the same transaction
  for (uint32_t i = 0; i < kAttempts; ++i) {
    random_ = drawn;
    status = attempt(session);
    if (session.active()) session.abort();
    if (status.code() != Code::kAborted || !violation_.empty()) break;
    session.scheduler().sleep_for(kPauseUs);
  }
  expect(status.code() != Code::kAborted, "loses again and again: " + status.to_string());
  return violation_.empty() ? status : Status();
}

Status LoneIndex::attempt(Session& session) {
  own_ = entries_;
  RDMACC_RETURN_IF_ERROR(session.begin(txn_));
  for (uint64_t i = random_.below(kChangesMax + 1); i > 0; --i) {
    RDMACC_RETURN_IF_ERROR(change(session));
  }
  RDMACC_RETURN_IF_ERROR(scan(session));
  if (random_.percent(10)) return Status();
  RDMACC_RETURN_IF_ERROR(session.commit());
  entries_ = own_;
  return Status();
}

Status LoneIndex::change(Session& session) {
  OrderedIndex index(session, index_);
  std::string entry = draw_entry();
  const bool removes = random_.percent(25);
  if (removes && !own_.empty() && random_.percent(80)) entry = *own_.lower_bound(*own_.begin());
  const bool there = own_.contains(entry);
  const Status status = removes ? index.remove(entry) : index.insert(entry);
  const Code refusal = removes ? Code::kNotFound : Code::kDuplicateKey;
  if (!status.ok() && status.code() != refusal) return status;
  expect(status.ok() == (there == removes), "a change gave " + status.to_string());
  if (status.ok() && removes) own_.erase(entry);
  if (status.ok() && !removes) own_.insert(entry);
  return Status();
}

Status LoneIndex::scan(Session& session) {
  IndexRange range{draw_entry(), draw_entry(), random_.percent(60), random_.percent(60)};
  if (random_.percent(10)) range.low.clear();
  if (random_.percent(10)) range.high.clear();
  const bool backward = random_.percent(50);
  std::vector<std::string> expected, seen;
  for (const std::string& entry : own_) {
    const bool inside =
        (!range.low_bounded || entry >= range.low) && (!range.high_bounded || entry < range.high);
    if (inside) expected.push_back(entry);
  }
  if (backward) std::reverse(expected.begin(), expected.end());
  IndexScan cursor;
  cursor.seek(index_, range, backward);
  std::vector<std::string_view> batch;
  do {
    RDMACC_RETURN_IF_ERROR(cursor.next(session, batch));
    seen.insert(seen.end(), batch.begin(), batch.end());
  } while (!batch.empty());
  expect(seen == expected, "a scan gave " + std::to_string(seen.size()) + " entries, not the " +
                               std::to_string(expected.size()) + " of the range");
  return Status();
}

// Some are one another's beginning, and many begin alike.
std::string LoneIndex::draw_entry() {
  std::string entry;
  for (uint64_t i = 1 + random_.below(kLettersMax); i > 0; --i) {
    entry += static_cast<char>('a' + random_.below(4));
  }
  if (random_.percent(60)) {
    entry.append(random_.below(random_.percent(5) ? kLongTailMax : kTailMax), '.');
  }
  return entry;
}

void LoneIndex::expect(bool holds, const std::string& what) {
  if (!holds && violation_.empty()) violation_ = "an index alone: " + what;
}

}  // namespace rdmacc
