#pragma once
#include "engine/workloads/record_chooser.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

constexpr uint32_t kYcsbOperationsMax = kTxnValuesMax;
constexpr uint32_t kYcsbRecordBytesMin = 16;
constexpr uint32_t kYcsbRecordBytesMax = 16 * 1024;

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

  // Empty, or what does not go together.
  std::string problem(const WorkloadCluster& cluster) const;
};

extern const WorkloadKind kYcsbKind;

// YCSB as RCC and RCBench run it: a transaction reads `operations` distinct records of one table,
// all in one batch of rounds or a few at a time, and updates some of them: each update is a
// read-modify-write. A record counts its updates, and all its other bytes follow from its key and
// that count. Invariant: every record is whole, and the counts add up to the committed updates.
class Ycsb : public Workload {
 public:
  // CHECKs that the options have no problem().
  Ycsb(const YcsbOptions& options, const WorkloadCluster& cluster);

  const char* name() const override { return "ycsb"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
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
  uint64_t draw_record(Random& random, std::span<const uint64_t> taken, NodeId wanted) const;
  bool fits(uint64_t record, std::span<const uint64_t> taken, NodeId wanted) const;
  void compute(Session& session) const;

  const YcsbOptions options_;
  const WorkloadCluster cluster_;
  const RecordChooser chooser_;
};

}  // namespace rdmacc
