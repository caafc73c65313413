#include "tests/sim/growing/loads.h"

#include <map>

#include "engine/storage/layout/key_hash.h"

namespace rdmacc {
namespace {

constexpr uint32_t kTableNumber = 61;
constexpr uint32_t kRecordSize = 48;
constexpr uint64_t kRowsMin = 4;
constexpr uint64_t kNumberBits = 48;
constexpr size_t kLookUpsMax = 400;  // whose round trips are counted

}  // namespace

std::vector<TableSpec> Loads::table_specs() const {
  return {native_table(kTableNumber, kRecordSize, options_.history)};
}

TxnInputs Loads::draw(Random& random) const {
  TxnInputs inputs;
  inputs.add(random.next() >> (64 - kNumberBits));
  const uint64_t drawn = kRowsMin + random.below(options_.rows_max);
  inputs.add(options_.rows_at_once != 0 ? options_.rows_at_once : drawn);
  return inputs;
}

Status Loads::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  for (uint64_t i = 0; i < inputs.values[1]; ++i) {
    const uint64_t number = inputs.values[0] + i;
    const std::string key = i < options_.deep_rows ? keys_.deep_key(table(0), 'd', number)
                                                   : keys_.key(table(0), 'r', number);
    RDMACC_RETURN_IF_ERROR(session.insert_unchecked(table(0), key, key));
  }
  effect.delta = static_cast<int64_t>(inputs.values[1]);
  return Status();
}

// All rows are there, and short ways lead to them. The first look-up of each makes the index's
// root known, the second one is asked what it took, in a session whose cache of locations has
// forgotten the first.
Status Loads::check(Session& session, const TxnOptions& options, int64_t delta,
                    std::string& violation) const {
  violation.clear();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  std::vector<std::string> keys;
  RDMACC_RETURN_IF_ERROR(
      abort_unless_ok(session, for_each_row(session, table(0), [&keys](const RowView& row) {
                        keys.emplace_back(row.key);
                        return Status();
                      })));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  if (std::cmp_less(keys.size(), delta)) {
    violation =
        std::to_string(delta) + " rows were loaded, a scan finds " + std::to_string(keys.size());
    return Status();
  }
  // As OCC reads: locks take round trips of their own.
  TxnOptions reading;
  reading.protocol = Protocol::kOcc;
  const size_t step = 1 + keys.size() / kLookUpsMax;
  // A record with the same tag may be tried before the right one: of the same bucket, and before
  // that where the session's cache of locations points.
  std::map<uint16_t, uint64_t> with_tag;
  const auto tag = [this](const std::string& key) { return tag_of(hash_key(table(0), key)); };
  for (const std::string& key : keys) with_tag[tag(key)]++;
  for (const bool counts : {false, true}) {
    RDMACC_RETURN_IF_ERROR(session.begin(reading));
    for (size_t i = 0; i < keys.size(); i += step) {
      RowView view;
      const uint64_t before = session.verb_counters().round_trips;
      RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.get(table(0), keys[i], view)));
      const uint64_t round_trips = session.verb_counters().round_trips - before;
      const uint64_t most = kRoundTripsMax + 2 * (with_tag[tag(keys[i])] - 1);
      if (!counts || i == 0 || round_trips <= most || !violation.empty()) continue;
      violation =
          "a look-up of " + keys[i] + " takes " + std::to_string(round_trips) + " round trips";
    }
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  }
  return Status();
}

}  // namespace rdmacc
