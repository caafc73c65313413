#pragma once
#include "engine/workloads/record_chooser.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

constexpr uint32_t kYcsbOperationsMax = kTxnValuesMax;
constexpr uint32_t kYcsbRecordBytesMin = 16;
constexpr uint32_t kYcsbRecordBytesMax = 16 * 1024;

// YCSB's own form: one operation a transaction, of these percentages. All 0: none of it.
struct YcsbMix {
  uint32_t reads = 0, updates = 0, inserts = 0, scans = 0, read_modify_writes = 0;
  bool latest = false;  // the reads are of records that were inserted last

  uint32_t sum() const { return reads + updates + inserts + scans + read_modify_writes; }
  bool is_on() const { return sum() > 0; }
  bool has_streams() const { return inserts > 0 || (latest && reads > 0); }
};
constexpr uint32_t kYcsbScanMax = 1'000;
// Inserts come in so many streams, each with a count of its own, so that they seldom meet.
constexpr uint64_t kYcsbStreams = 64;

struct YcsbOptions {
  uint64_t records = 100'000;
  uint32_t operations = 10;     // of a transaction, on distinct records
  uint32_t write_percent = 20;  // of the operations
  uint32_t record_bytes = 64;   // without the key
  uint64_t hot_records = 0;     // 0: a thousandth when hot_access_percent > 0, else none
  uint32_t hot_access_percent = 0;
  double zipf_theta = 0;    // instead of hot records
  uint32_t compute_us = 0;  // between the reads of a transaction and its commit
  // The records of a transaction lie on so many nodes exactly; 0: wherever they fall.
  uint32_t nodes_per_transaction = 0;
  // Reads that go out together; 0: all of a transaction's. One at a time is how an application
  // works that needs each record before it knows the next.
  uint32_t reads_per_batch = 0;
  uint32_t history = kDefaultHistory;
  YcsbMix mix;
  uint32_t scan_length = 100;  // of a scan, at most

  // Empty, or what does not go together.
  std::string problem(const WorkloadCluster& cluster) const;
};

extern const WorkloadKind kYcsbKind;

// YCSB as RCC and RCBench run it: a transaction reads `operations` distinct records of one table,
// all in one batch of rounds or a few at a time, and updates some of them: each update is a
// read-modify-write. A record counts its updates, and all its other bytes follow from its key and
// that count. Invariant: every record is whole, and the counts add up to the committed updates.
//
// Or, with a mix, one operation a transaction (ycsb_mix.cc). Records are numbered on as they are
// inserted: the i-th of stream s is records + i * kYcsbStreams + s, and a row of a second table
// says how many a stream has. Invariant, besides: those are the records that there are.
class Ycsb : public Workload {
 public:
  enum Kind : uint32_t {
    kTransactionKind,
    kReadKind,             // a record
    kReadLatestKind,       // stream, age: that many of the stream are younger
    kUpdateKind,           // a record
    kInsertKind,           // stream
    kScanKind,             // first record, length
    kReadModifyWriteKind,  // a record
    kKindCount
  };

  // CHECKs that the options have no problem().
  Ycsb(const YcsbOptions& options, const WorkloadCluster& cluster);

  const char* name() const override { return "ycsb"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  bool grows() const override { return options_.mix.inserts > 0; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  // Reads of the latest, whose keys follow from a count.
  Status survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                KeyDeclaration& keys, bool& known) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

  // Gives the count of a record that is there and whole; `bytes` is its length.
  static Status read_record(uint64_t record, const RowView& row, uint32_t bytes, uint64_t& updates);
  // The bytes of a record that was updated so often.
  static void write_record(uint64_t record, uint64_t updates, uint32_t bytes, char* out);

  // A record number and whether it is updated, as an input has them.
  static constexpr uint64_t kWriteBit = 1ull << 63;

 private:
  // The records that a transaction has so far.
  struct Taken {
    std::span<const uint64_t> values;
    uint64_t marks;  // a bit for each, by its number: one that has none is not among them
  };
  uint64_t draw_record(Random& random, const Taken& taken, NodeId wanted) const;
  uint64_t next_record(uint64_t record, const Taken& taken, NodeId wanted) const;
  TxnInputs draw_transaction(Random& random) const;
  bool fits(uint64_t record, const Taken& taken, NodeId wanted) const;
  void compute(Session& session) const;
  Status check_records(Session& session, std::span<const uint64_t> streams, int64_t delta,
                       std::string& violation) const;
  // ycsb_mix.cc
  TxnInputs draw_operation(Random& random) const;
  Status execute_operation(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;
  bool declare_operation(const TxnInputs& inputs, KeyDeclaration& keys) const;
  bool knows_operation(const TxnInputs& inputs) const;
  Status load_streams(Session& session, const TxnOptions& options) const;
  Status read_streams(Session& session, std::vector<uint64_t>& counts) const;
  Status update(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;
  Status insert(Session& session, uint64_t stream, TxnEffect& effect) const;
  Status scan(Session& session, uint64_t first, uint64_t length) const;
  Status read_latest(Session& session, const TxnInputs& inputs, uint64_t& record) const;

  const YcsbOptions options_;
  const WorkloadCluster cluster_;
  const RecordChooser chooser_, ages_;
};

}  // namespace rdmacc
