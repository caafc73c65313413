#include "tests/sim/growing/heads.h"

#include <map>

#include "engine/workloads/bulk_load.h"

namespace rdmacc {
namespace {

constexpr uint32_t kTableNumber = 67;
constexpr uint32_t kRecordSize = 48;
constexpr uint32_t kLookPercent = 45, kScanPercent = 8;
constexpr uint64_t kRowsLookedFor = 4;
constexpr uint64_t kNumberBits = 40;

// Of the row that a head is, or of one that it counts: the number is all that it says.
uint64_t number_in(std::string_view row) {
  return std::strtoull(std::string(row).c_str(), nullptr, 10);
}

}  // namespace

std::vector<TableSpec> Heads::table_specs() const {
  return {native_table(kTableNumber, kRecordSize, options_.history)};
}

Status Heads::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t) {
  for (uint64_t head = 0; head < options_.heads && part == 0; ++head) {
    RDMACC_RETURN_IF_ERROR(insert_alone(session, options, table(0), head_key(head), "0"));
  }
  return Status();
}

TxnInputs Heads::draw(Random& random) const {
  TxnInputs inputs;
  inputs.kind = random.percent(kScanPercent) ? kScan : random.percent(kLookPercent) ? kLook : kAdd;
  inputs.add(random.below(options_.heads));
  inputs.add(random.next());
  return inputs;
}

Status Heads::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  const uint64_t head = inputs.values[0] % options_.heads;
  if (inputs.kind == kAdd) return add(session, head, inputs.values[1]);
  if (inputs.kind == kLook) return look(session, head, inputs.values[1], effect.doubt);
  return scan(session, effect.doubt);
}

Status Heads::count(Session& session, uint64_t head, uint64_t& counted) const {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(0), head_key(head), view));
  if (!view.found) return Status(Code::kCorrupt, "a head is missing");
  counted = number_in(view.row);
  return Status();
}

Status Heads::add(Session& session, uint64_t head, uint64_t drawn) const {
  Random random(drawn);
  uint64_t counted = 0;
  RDMACC_RETURN_IF_ERROR(count(session, head, counted));
  const std::string key = row_key(head, counted + 1);
  const std::string number = std::to_string(counted + 1);
  const Status added = random.percent(50) ? session.insert(table(0), key, number)
                                          : session.insert_unchecked(table(0), key, number);
  if (added.code() == Code::kDuplicateKey) return session.abort_on_conflict();
  RDMACC_RETURN_IF_ERROR(added);
  const uint64_t first = random.next() >> (64 - kNumberBits);
  const uint64_t fillers = random.below(options_.fillers_max + 1);
  for (uint64_t i = random.percent(options_.fillers_percent) ? fillers : 0; i > 0; --i) {
    const std::string filler = keys_.key(table(0), 'f', first + i);
    RDMACC_RETURN_IF_ERROR(session.insert_unchecked(table(0), filler, "0"));
  }
  return session.put(table(0), head_key(head), number);
}

// The rows that may be next are guessed from the head as it lay there.
Status Heads::look(Session& session, uint64_t head, uint64_t drawn, std::string& doubt) const {
  Random random(drawn);
  RowView hint;
  RDMACC_RETURN_IF_ERROR(session.unvalidated_read(table(0), head_key(head), hint));
  const uint64_t first = hint.found ? number_in(hint.row) : 1;
  uint64_t counted = 0;
  const bool head_first = random.percent(options_.head_first_percent);
  if (head_first) RDMACC_RETURN_IF_ERROR(count(session, head, counted));
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kRowsLookedFor; ++i) keys.push_back(row_key(head, first + i));
  std::vector<RowView> views(keys.size());
  if (random.percent(50)) {
    const std::vector<std::string_view> asked(keys.begin(), keys.end());
    RDMACC_RETURN_IF_ERROR(session.get_many(table(0), asked, views));
  } else {
    for (size_t i = 0; i < keys.size(); ++i) {
      RDMACC_RETURN_IF_ERROR(session.get(table(0), keys[i], views[i]));
    }
  }
  session.scheduler().sleep_for(random.below(options_.pause_us_max));
  if (!head_first) RDMACC_RETURN_IF_ERROR(count(session, head, counted));
  const bool checked = random.percent(40);
  if (checked) RDMACC_RETURN_IF_ERROR(session.check_reads());
  for (uint64_t i = 0; i < keys.size(); ++i) {
    const bool should = first + i >= 1 && first + i <= counted;
    if (views[i].found == should) continue;
    doubt = "head " + std::to_string(head) + " counts " + std::to_string(counted) + " rows, and " +
            std::to_string(first + i) + (should ? " is missing" : " is there");
  }
  // What was checked fits together before the commit does.
  return checked && !doubt.empty() ? Status(Code::kCorrupt, doubt) : Status();
}

Status Heads::scan(Session& session, std::string& doubt) const {
  std::map<std::string, uint64_t> heads, rows;
  RDMACC_RETURN_IF_ERROR(for_each_row(session, table(0), [&](const RowView& view) {
    if (view.key[0] == 'h') heads[std::string(view.key)] = number_in(view.row);
    if (view.key[0] == 'r') rows[std::string(view.key)] = number_in(view.row);
    return Status();
  }));
  uint64_t counted = 0;
  for (const auto& [key, number] : heads) counted += number;
  if (heads.size() == options_.heads && counted == rows.size()) return Status();
  doubt = "a scan gave " + std::to_string(rows.size()) + " rows, and " +
          std::to_string(heads.size()) + " heads that count " + std::to_string(counted);
  return Status();
}

// What must be there is checked of every workload alike (acknowledged_rows.h).
Status Heads::check(Session& session, const TxnOptions& options, int64_t,
                    std::string& violation) const {
  violation.clear();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, scan(session, violation)));
  return abort_unless_ok(session, session.commit());
}

}  // namespace rdmacc
