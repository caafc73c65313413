// YCSB's own form: one operation a transaction. An update replaces a whole row, so that it reads
// it, too; a read-modify-write does, between the two, what --compute-us says.
#include "engine/workloads/rows.h"
#include "engine/workloads/ycsb.h"

namespace rdmacc {
namespace {

constexpr uint32_t kStreamsTable = 1;

struct StreamRow {
  uint64_t inserted = 0;
};

}  // namespace

Status Ycsb::load_streams(Session& session, const TxnOptions& options) const {
  if (!options_.mix.has_streams()) return Status();
  return retry_aborted(session.scheduler(), [&] {
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    for (uint64_t stream = 0; stream < kYcsbStreams; ++stream) {
      RDMACC_RETURN_IF_ERROR(
          abort_unless_ok(session, session.insert_unchecked(table(kStreamsTable), NumberKey(stream),
                                                            bytes_of(StreamRow()))));
    }
    return abort_unless_ok(session, session.commit());
  });
}

Status Ycsb::read_streams(Session& session, std::vector<uint64_t>& counts) const {
  if (!options_.mix.has_streams()) return Status();
  RowBatch streams;
  for (uint64_t stream = 0; stream < kYcsbStreams; ++stream) streams.ask(NumberKey(stream));
  RDMACC_RETURN_IF_ERROR(streams.get(session, table(kStreamsTable)));
  for (size_t i = 0; i < streams.size(); ++i) {
    StreamRow row;
    RDMACC_RETURN_IF_ERROR(row_of(streams.row(i), "a stream", row));
    counts.push_back(row.inserted);
  }
  return Status();
}

// ---- Drawing

TxnInputs Ycsb::draw_operation(Random& random) const {
  const YcsbMix& mix = options_.mix;
  const std::array<std::pair<uint32_t, Kind>, 5> shares = {{
      {mix.reads, mix.latest ? kReadLatestKind : kReadKind},
      {mix.updates, kUpdateKind},
      {mix.inserts, kInsertKind},
      {mix.scans, kScanKind},
      {mix.read_modify_writes, kReadModifyWriteKind},
  }};
  uint64_t drawn = random.below(mix.sum());
  size_t which = 0;
  while (drawn >= shares[which].first) drawn -= shares[which++].first;
  TxnInputs inputs;
  inputs.kind = shares[which].second;
  switch (shares[which].second) {
    case kReadLatestKind:
      inputs.add(random.below(kYcsbStreams));
      inputs.add(ages_.choose(random) / kYcsbStreams);
      break;
    case kInsertKind:
      inputs.add(random.below(kYcsbStreams));
      break;
    case kScanKind:
      inputs.add(chooser_.choose(random));
      inputs.add(1 + random.below(options_.scan_length));
      break;
    default:
      inputs.add(chooser_.choose(random));
  }
  return inputs;
}

bool Ycsb::knows_operation(const TxnInputs& inputs) const {
  const uint64_t first = inputs.values[0], second = inputs.values[1];
  switch (inputs.kind) {
    case kReadKind:
    case kUpdateKind:
    case kReadModifyWriteKind:
      return inputs.count == 1 && first < options_.records;
    case kReadLatestKind:
      return options_.mix.has_streams() && inputs.count == 2 && first < kYcsbStreams &&
             second < options_.records;
    case kInsertKind:
      return options_.mix.has_streams() && inputs.count == 1 && first < kYcsbStreams;
    case kScanKind:
      return inputs.count == 2 && first < options_.records && second >= 1 &&
             second <= options_.scan_length;
    default:
      return false;
  }
}

// ---- The operations

Status Ycsb::execute_operation(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  switch (static_cast<Kind>(inputs.kind)) {
    case kInsertKind:
      return insert(session, inputs.values[0], effect);
    case kScanKind:
      return scan(session, inputs.values[0], inputs.values[1]);
    case kUpdateKind:
    case kReadModifyWriteKind:
      return update(session, inputs, effect);
    case kReadLatestKind: {
      uint64_t record = 0;
      RDMACC_RETURN_IF_ERROR(read_latest(session, inputs, record));
      return scan(session, record, 1);
    }
    default:
      return scan(session, inputs.values[0], 1);
  }
}

Status Ycsb::update(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  const uint64_t record = inputs.values[0];
  RowBatch rows;
  rows.ask(NumberKey(record));
  RDMACC_RETURN_IF_ERROR(rows.get(session, table(0), true));
  uint64_t updates = 0;
  RDMACC_RETURN_IF_ERROR(read_record(record, rows.row(0), options_.record_bytes, updates));
  if (inputs.kind == kReadModifyWriteKind && options_.compute_us > 0) compute(session);
  char row[kYcsbRecordBytesMax];
  write_record(record, updates + 1, options_.record_bytes, row);
  effect.delta = 1;
  return session.put(table(0), rows.key(0), {row, options_.record_bytes});
}

// The record's key is new because the stream's count was read and is counted up.
Status Ycsb::insert(Session& session, uint64_t stream, TxnEffect& effect) const {
  const NumberKey stream_key(stream);
  StreamRow count;
  RDMACC_RETURN_IF_ERROR(read_row(session, table(kStreamsTable), stream_key, "a stream", count));
  const uint64_t record = options_.records + count.inserted * kYcsbStreams + stream;
  ++count.inserted;
  RDMACC_RETURN_IF_ERROR(session.put(table(kStreamsTable), stream_key, bytes_of(count)));
  char row[kYcsbRecordBytesMax];
  write_record(record, 0, options_.record_bytes, row);
  effect.delta = 1;
  return session.insert_unchecked(table(0), NumberKey(record), {row, options_.record_bytes});
}

// By the records' numbers. Behind those that were loaded not all of a range need be there.
Status Ycsb::scan(Session& session, uint64_t first, uint64_t length) const {
  RowBatch rows;
  for (uint64_t i = 0; i < length; ++i) rows.ask(NumberKey(first + i));
  RDMACC_RETURN_IF_ERROR(rows.get(session, table(0)));
  for (uint64_t i = 0; i < length; ++i) {
    if (!rows.row(i).found && first + i >= options_.records && length > 1) continue;
    uint64_t updates = 0;
    RDMACC_RETURN_IF_ERROR(unless_it_lost(
        session, read_record(first + i, rows.row(i), options_.record_bytes, updates)));
  }
  return Status();
}

// Which record is that old in its stream; older than all that were inserted: one that was loaded.
Status Ycsb::read_latest(Session& session, const TxnInputs& inputs, uint64_t& record) const {
  const uint64_t stream = inputs.values[0], age = inputs.values[1];
  StreamRow count;
  RDMACC_RETURN_IF_ERROR(
      read_row(session, table(kStreamsTable), NumberKey(stream), "a stream", count));
  if (age < count.inserted) {
    record = options_.records + (count.inserted - 1 - age) * kYcsbStreams + stream;
    return Status();
  }
  const uint64_t before = (age - count.inserted) * kYcsbStreams + stream;
  record = options_.records - 1 - before % options_.records;
  return Status();
}

// ---- The keys

// The records that inserts add follow from the count of a stream, which they declare to write. A
// scan that looks for some of them goes without a declaration, since they may come in its epoch.
bool Ycsb::declare_operation(const TxnInputs& inputs, KeyDeclaration& keys) const {
  switch (static_cast<Kind>(inputs.kind)) {
    case kReadKind:
      keys.add(table(0), NumberKey(inputs.values[0]), KeyUse::kRead);
      return true;
    case kUpdateKind:
    case kReadModifyWriteKind:
      keys.add(table(0), NumberKey(inputs.values[0]), KeyUse::kWrite);
      return true;
    case kInsertKind:
      keys.add(table(kStreamsTable), NumberKey(inputs.values[0]), KeyUse::kWrite);
      keys.derived_inserts = true;
      return true;
    case kScanKind:
      if (inputs.values[0] + inputs.values[1] > options_.records) return false;
      for (uint64_t i = 0; i < inputs.values[1]; ++i) {
        keys.add(table(0), NumberKey(inputs.values[0] + i), KeyUse::kRead);
      }
      return true;
    default:
      return false;
  }
}

// A record that is counted has been put in place in an earlier epoch.
Status Ycsb::survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                    KeyDeclaration& keys, bool& known) const {
  known = inputs.kind == kReadLatestKind;
  if (!known) return Status();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  uint64_t record = 0;
  const Status found = read_latest(session, inputs, record);
  session.abort();
  RDMACC_RETURN_IF_ERROR(found);
  keys.add(table(kStreamsTable), NumberKey(inputs.values[0]), KeyUse::kRead);
  keys.add(table(0), NumberKey(record), KeyUse::kRead);
  return Status();
}

}  // namespace rdmacc
