#include "engine/workloads/ycsb.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>

#include "engine/workloads/bulk_load.h"
#include "engine/workloads/number_key.h"

namespace rdmacc {
namespace {

constexpr uint64_t kRecordsPerPart = 1'000;
constexpr uint32_t kTableNumber = 51, kStreamsTableNumber = 52;
// YCSB's skew: of the ages of those that are read as the latest, unless another one is told.
constexpr double kLatestTheta = 0.99;
constexpr uint32_t kOperationsOtherwise = 10, kWritesOtherwise = 20;
constexpr NodeId kAnyNode = 0xFFFF;
constexpr uint32_t kNodesMax = 64;
// Draws of one record before its neighbours are taken instead: a small hot set may have no record
// left on a node.
constexpr uint32_t kDrawsMax = 256;
// So many records for each that a transaction wants on a node, and every node has enough of them.
constexpr uint64_t kRecordsPerWish = 16;

// Every word of a record but the first, which is the count.
uint64_t filler(uint64_t record, uint64_t updates) {
  return Random(record * 0x2545F4914F6CDD1Dull ^ updates).next();
}

constexpr std::array kSettings = {
    WorkloadSetting{"records", nullptr, "records", 1, 4'294'967'296, 100'000},
    WorkloadSetting{"operations", nullptr, "records that a transaction accesses", 1,
                    kYcsbOperationsMax, kOperationsOtherwise},
    WorkloadSetting{"writes", nullptr, "percent of the operations that update their record", 0, 100,
                    kWritesOtherwise},
    WorkloadSetting{"record-bytes", nullptr, "bytes of a record", kYcsbRecordBytesMin,
                    kYcsbRecordBytesMax, 64},
    WorkloadSetting{"hot-records", nullptr, "hot records, 0: a thousandth", 0, 4'294'967'296, 0},
    WorkloadSetting{"hot-access", nullptr, "percent of accesses that go to hot records; 0: uniform",
                    0, 100, 0},
    WorkloadSetting{"zipf", nullptr, "skew factor of a Zipf distribution; 0: none", 0, 0.999, 0,
                    true},
    WorkloadSetting{"compute-us", nullptr, "microseconds of computation in a transaction", 0,
                    1'000'000, 0},
    WorkloadSetting{"nodes-per-transaction", "theta",
                    "nodes that the records of a transaction lie on, 0: any", 0, kNodesMax, 0},
    WorkloadSetting{"reads-per-batch", nullptr,
                    "records that a transaction reads together, 0: all of them", 0,
                    kYcsbOperationsMax, 0},
    WorkloadSetting{"mix", nullptr, "YCSB's workload, 1 for A to 6 for F; 0: none of them", 0, 6,
                    0},
    WorkloadSetting{"reads", nullptr, "percent of reads in a mix of one's own", 0, 100, 0},
    WorkloadSetting{"updates", nullptr, "percent of updates in it", 0, 100, 0},
    WorkloadSetting{"inserts", nullptr, "percent of inserts in it", 0, 100, 0},
    WorkloadSetting{"scans", nullptr, "percent of scans in it", 0, 100, 0},
    WorkloadSetting{"read-modify-writes", nullptr, "percent of read-modify-writes in it", 0, 100,
                    0},
    WorkloadSetting{"latest", nullptr, "1: its reads are of the records inserted last", 0, 1, 0},
    WorkloadSetting{"scan-length", nullptr, "most records of a scan", 1, kYcsbScanMax, 100},
    kHistorySetting,
};

// YCSB's core workloads A to F.
constexpr std::array kMixes = {
    YcsbMix{.reads = 50, .updates = 50},
    YcsbMix{.reads = 95, .updates = 5},
    YcsbMix{.reads = 100},
    YcsbMix{.reads = 95, .inserts = 5, .latest = true},
    YcsbMix{.inserts = 5, .scans = 95},
    YcsbMix{.reads = 50, .read_modify_writes = 50},
};

Status take_mix(const WorkloadSettings& settings, YcsbMix& mix) {
  mix.reads = settings.number32("reads");
  mix.updates = settings.number32("updates");
  mix.inserts = settings.number32("inserts");
  mix.scans = settings.number32("scans");
  mix.read_modify_writes = settings.number32("read-modify-writes");
  mix.latest = settings.number("latest") != 0;
  const uint64_t number = settings.number("mix");
  if (number == 0) return Status();
  if (mix.is_on() || mix.latest) {
    return Status(Code::kInvalidArgument, "--mix excludes percentages of one's own, and --latest");
  }
  mix = kMixes[number - 1];
  return Status();
}

Result<std::unique_ptr<Workload>> make_ycsb(const WorkloadSettings& settings,
                                            const WorkloadCluster& cluster) {
  YcsbOptions options;
  options.records = settings.number("records");
  options.operations = settings.number32("operations");
  options.write_percent = settings.number32("writes");
  options.record_bytes = settings.number32("record-bytes");
  options.reads_per_batch = settings.number32("reads-per-batch");
  options.hot_records = settings.number("hot-records");
  options.hot_access_percent = settings.number32("hot-access");
  options.zipf_theta = settings.fraction("zipf");
  options.compute_us = settings.number32("compute-us");
  options.nodes_per_transaction = settings.number32("nodes-per-transaction");
  options.history = settings.number32("history");
  options.scan_length = settings.number32("scan-length");
  RDMACC_RETURN_IF_ERROR(take_mix(settings, options.mix));
  const std::string problem = options.problem(cluster);
  if (!problem.empty()) return Status(Code::kInvalidArgument, problem);
  return Result<std::unique_ptr<Workload>>(std::make_unique<Ycsb>(options, cluster));
}

AccessPattern pattern_of(const YcsbOptions& options) {
  AccessPattern pattern{options.records, options.hot_records, options.hot_access_percent,
                        options.zipf_theta};
  if (options.hot_access_percent > 0 && options.hot_records == 0) {
    pattern.hot_records = std::max<uint64_t>(1, options.records / 1'000);
  }
  return pattern;
}

// How old the records are that are read as the latest.
AccessPattern ages_of(const YcsbOptions& options) {
  if (!options.mix.latest) return AccessPattern{};
  const double theta = options.zipf_theta > 0 ? options.zipf_theta : kLatestTheta;
  return AccessPattern{options.records, 0, 0, theta};
}

// What does not fit together of a mix, or with one; or nothing.
const char* problem_of_mix(const YcsbOptions& options) {
  const YcsbMix& mix = options.mix;
  if (mix.latest && mix.reads == 0) return "--latest needs --reads";
  if (!mix.is_on()) return "";
  if (mix.sum() != 100) return "the percentages of a mix must add up to 100";
  const bool one = options.operations == 1 || options.operations == kOperationsOtherwise;
  if (!one || options.write_percent != kWritesOtherwise || options.reads_per_batch != 0 ||
      options.nodes_per_transaction != 0) {
    return "a mix has one operation a transaction: it excludes --operations, --writes, "
           "--reads-per-batch and --nodes-per-transaction";
  }
  return "";
}

}  // namespace

const WorkloadKind kYcsbKind = {"ycsb", "YCSB: reads and updates of records of one table",
                                kSettings, make_ycsb};

std::string YcsbOptions::problem(const WorkloadCluster& cluster) const {
  if (std::string mixed = problem_of_mix(*this); !mixed.empty()) return mixed;
  if (operations > records && !mix.is_on()) return "--operations must be at most --records";
  if (hot_records > records) return "--hot-records must be at most --records";
  if (hot_records > 0 && hot_access_percent == 0) return "--hot-records needs --hot-access";
  if (zipf_theta > 0 && hot_access_percent > 0) {
    return "--zipf and --hot-access exclude each other";
  }
  if (nodes_per_transaction == 0) return "";
  if (nodes_per_transaction > cluster.nodes || nodes_per_transaction > operations) {
    return "--nodes-per-transaction must be at most --nodes and at most --operations";
  }
  const uint64_t least = kRecordsPerWish * operations * cluster.nodes;
  if (records < least) {
    return "--nodes-per-transaction needs at least " + std::to_string(least) + " records";
  }
  return "";
}

Ycsb::Ycsb(const YcsbOptions& options, const WorkloadCluster& cluster)
    : options_(options), cluster_(cluster), chooser_(pattern_of(options)), ages_(ages_of(options)) {
  CHECK(options.problem(cluster).empty() && cluster.nodes <= kNodesMax);
  CHECK(options.operations >= 1 && options.operations <= kYcsbOperationsMax);
  CHECK(options.record_bytes >= kYcsbRecordBytesMin && options.record_bytes <= kYcsbRecordBytesMax);
}

std::vector<TableSpec> Ycsb::table_specs() const {
  const uint64_t record = record_bytes(sizeof(NumberKey), options_.record_bytes);
  std::vector<TableSpec> specs = {
      native_table(kTableNumber, std::min<uint64_t>(record, kRecordInlineMax), options_.history)};
  if (options_.mix.has_streams()) {
    specs.push_back(native_table(
        kStreamsTableNumber, record_bytes(sizeof(NumberKey), sizeof(uint64_t)), options_.history));
  }
  return specs;
}

Status Ycsb::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  const LoadPart records = part_of_load(options_.records, part, parts);
  if (part == 0) RDMACC_RETURN_IF_ERROR(load_streams(session, options));
  BulkLoad rows(session, options);
  std::string row(options_.record_bytes, '\0');
  for (uint64_t record = records.begin; record < records.end; ++record) {
    write_record(record, 0, options_.record_bytes, row.data());
    RDMACC_RETURN_IF_ERROR(rows.add(table(0), NumberKey(record), row));
  }
  return rows.finish();
}

uint64_t Ycsb::load_parts() const { return options_.records / kRecordsPerPart + 1; }

// ---- Drawing

constexpr uint64_t mark_of(uint64_t record) { return 1ull << (record % 64); }

inline bool Ycsb::fits(uint64_t record, const Taken& taken, NodeId wanted) const {
  if ((taken.marks & mark_of(record)) != 0) {
    for (const uint64_t other : taken.values) {
      if ((other & ~kWriteBit) == record) return false;
    }
  }
  return wanted == kAnyNode || home_node_of(table(0), NumberKey(record), cluster_.nodes) == wanted;
}

[[gnu::always_inline]] inline uint64_t Ycsb::draw_record(Random& random, const Taken& taken,
                                                         NodeId wanted) const {
  uint64_t record = 0;
  for (uint32_t i = 0; i < kDrawsMax; ++i) {
    record = chooser_.choose(random);
    if (fits(record, taken, wanted)) return record;
  }
  return next_record(record, taken, wanted);
}

// Of those behind this one.
[[gnu::noinline]] uint64_t Ycsb::next_record(uint64_t record, const Taken& taken,
                                             NodeId wanted) const {
  for (uint64_t i = 0; i < options_.records; ++i) {
    record = (record + 1) % options_.records;
    if (fits(record, taken, wanted)) return record;
  }
  check_failed("a node has too few records", __FILE__, __LINE__);  // see problem()
}

TxnInputs Ycsb::draw(Random& random) const {
  return options_.mix.is_on() ? draw_operation(random) : draw_transaction(random);
}

TxnInputs Ycsb::draw_transaction(Random& random) const {
  // Which nodes: the first of a shuffled list. The operations take them in turn.
  std::array<NodeId, kNodesMax> nodes;
  const uint32_t theta = options_.nodes_per_transaction;
  if (theta > 0) {
    for (NodeId n = 0; n < cluster_.nodes; ++n) nodes[n] = n;
    for (uint32_t i = 0; i < theta; ++i) {
      std::swap(nodes[i], nodes[i + random.below(cluster_.nodes - i)]);
    }
  }
  TxnInputs inputs;
  uint64_t marks = 0;
  for (uint32_t i = 0; i < options_.operations; ++i) {
    const Taken taken{{inputs.values.data(), inputs.count}, marks};
    const uint64_t record = draw_record(random, taken, theta > 0 ? nodes[i % theta] : kAnyNode);
    marks |= mark_of(record);
    inputs.add(record | (random.percent(options_.write_percent) ? kWriteBit : 0));
  }
  return inputs;
}

// ---- The transaction

void Ycsb::write_record(uint64_t record, uint64_t updates, uint32_t bytes, char* out) {
  const uint64_t word = filler(record, updates);
  std::memcpy(out, &updates, 8);
  uint32_t at = 8;
  for (; at + 8 <= bytes; at += 8) std::memcpy(out + at, &word, 8);
  std::memcpy(out + at, &word, bytes - at);
}

namespace {

[[gnu::cold]] Status wrong_record(uint64_t record, const RowView& row, uint32_t bytes) {
  const char* what = "is not whole";
  if (row.row.size() != bytes) what = "has another length than it was given";
  if (!row.found) what = "is missing";
  return Status(Code::kCorrupt, "record " + std::to_string(record) + " " + what);
}

// False: wrong_record() says why.
inline bool take_record(uint64_t record, const RowView& row, uint32_t bytes, uint64_t& updates) {
  if (!row.found || row.row.size() != bytes) return false;
  std::memcpy(&updates, row.row.data(), 8);
  // The same word over and over: what follows it is what precedes it.
  const uint64_t word = filler(record, updates);
  const char* const words = row.row.data() + sizeof(updates);
  return std::memcmp(words, &word, sizeof(word)) == 0 &&
         std::memcmp(words, words + sizeof(word), bytes - 2 * sizeof(word)) == 0;
}

}  // namespace

Status Ycsb::read_record(uint64_t record, const RowView& row, uint32_t bytes, uint64_t& updates) {
  return take_record(record, row, bytes, updates) ? Status() : wrong_record(record, row, bytes);
}

Status Ycsb::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  if (inputs.kind != kTransactionKind) return execute_operation(session, inputs, effect);
  CHECK(inputs.count <= kYcsbOperationsMax);
  boost::container::static_vector<NumberKey, kYcsbOperationsMax> numbers(inputs.count);
  boost::container::static_vector<std::string_view, kYcsbOperationsMax> keys(inputs.count);
  for (uint32_t i = 0; i < inputs.count; ++i) {
    numbers.data()[i] = NumberKey(inputs.values[i] & ~kWriteBit);
    keys.data()[i] = numbers.data()[i];
  }
  boost::container::static_vector<RowView, kYcsbOperationsMax> rows(inputs.count);
  std::array<uint64_t, kYcsbOperationsMax> updates;
  const uint32_t batch = options_.reads_per_batch == 0 ? inputs.count : options_.reads_per_batch;
  for (uint32_t at = 0; at < inputs.count; at += batch) {
    const uint32_t count = std::min(batch, inputs.count - at);
    RDMACC_RETURN_IF_ERROR(session.get_many(table(0), std::span(keys.data() + at, count),
                                            std::span(rows.data() + at, count)));
  }
  for (uint32_t i = 0; i < inputs.count; ++i) {
    const uint64_t record = inputs.values[i] & ~kWriteBit;
    if (!take_record(record, rows.data()[i], options_.record_bytes, updates[i])) {
      return wrong_record(record, rows[i], options_.record_bytes);
    }
  }
  if (options_.compute_us > 0) compute(session);
  char row[kYcsbRecordBytesMax];
  for (uint32_t i = 0; i < inputs.count; ++i) {
    if ((inputs.values[i] & kWriteBit) == 0) continue;
    write_record(inputs.values[i] & ~kWriteBit, updates[i] + 1, options_.record_bytes, row);
    RDMACC_RETURN_IF_ERROR(session.put(table(0), keys[i], {row, options_.record_bytes}));
    ++effect.delta;
  }
  return Status();
}

// Keeps the processor busy, as a computation does, so that nothing else of this worker runs
// meanwhile. Virtual time knows no busy processor: there others run while this one sleeps.
void Ycsb::compute(Session& session) const {
  if (cluster_.virtual_time) {
    session.scheduler().sleep_for(options_.compute_us);
    return;
  }
  Endpoint& endpoint = session.scheduler().endpoint();
  const uint64_t end_ns = endpoint.now_ns() + options_.compute_us * 1'000ull;
  while (endpoint.now_ns() < end_ns) {
  }
}

bool Ycsb::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (inputs.kind != kTransactionKind) return declare_operation(inputs, keys);
  for (uint32_t i = 0; i < inputs.count; ++i) {
    const bool write = (inputs.values[i] & kWriteBit) != 0;
    keys.add(table(0), NumberKey(inputs.values[i] & ~kWriteBit),
             write ? KeyUse::kWrite : KeyUse::kRead);
  }
  return true;
}

bool Ycsb::knows(const TxnInputs& inputs) const {
  if (options_.mix.is_on()) return knows_operation(inputs);
  return inputs.kind == kTransactionKind && inputs.count == options_.operations;
}

// ---- The invariant

Status Ycsb::check(Session& session, const TxnOptions& options, int64_t delta,
                   std::string& violation) const {
  violation.clear();
  std::vector<uint64_t> streams;
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, read_streams(session, streams)));
  RDMACC_RETURN_IF_ERROR(
      abort_unless_ok(session, check_records(session, streams, delta, violation)));
  return abort_unless_ok(session, session.commit());
}

Status Ycsb::check_records(Session& session, std::span<const uint64_t> streams, int64_t delta,
                           std::string& violation) const {
  uint64_t rows = 0, expected = options_.records;
  for (const uint64_t inserted : streams) expected += inserted;
  int64_t sum = 0;
  RDMACC_RETURN_IF_ERROR(for_each_row(session, table(0), [&](const RowView& row) {
    uint64_t updates = 0;
    const uint64_t record = NumberKey::number_of(row.key);
    const Status whole = read_record(record, row, options_.record_bytes, updates);
    if (!whole.ok()) violation = whole.message();
    if (record >= options_.records) {
      const uint64_t later = record - options_.records;
      if (streams.empty() || later / kYcsbStreams >= streams[later % kYcsbStreams]) {
        violation = "there is a record " + std::to_string(record);
      }
    }
    sum += static_cast<int64_t>(updates);
    ++rows;
    return Status();
  }));
  if (!violation.empty()) return Status();
  // An insert counts as an update does.
  sum += static_cast<int64_t>(expected - options_.records);
  if (rows != expected) {
    violation =
        "the scan found " + std::to_string(rows) + " of " + std::to_string(expected) + " records";
  } else if (sum != delta) {
    violation = "the records count " + std::to_string(sum) + " updates, but " +
                std::to_string(delta) + " were committed";
  }
  return Status();
}

}  // namespace rdmacc
