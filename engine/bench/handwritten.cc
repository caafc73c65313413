#include "engine/bench/handwritten.h"

#include <xxhash.h>

#include "engine/bench/run_jobs.h"
#include "engine/cluster/timestamp.h"
#include "engine/storage/layout/key_hash.h"
#include "engine/storage/wire/storage_client.h"
#include "engine/txn/driver/table_cache.h"
#include "engine/workloads/number_key.h"
#include "engine/workloads/ycsb.h"

namespace rdmacc {
namespace {

constexpr uint32_t kRecordBytes = 64;
constexpr size_t kKeyBytes = sizeof(uint64_t);
constexpr size_t kStoredBytes = record_bytes(kKeyBytes, kRecordBytes);
constexpr size_t kStoredWords = (kStoredBytes + 7) / 8;
constexpr uint64_t kNodeBytesPerRecord = 512;
constexpr uint32_t kTransactionsPerLook = 1024;  // at the clock

uint64_t load(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
void store(uint64_t* word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

class HandwrittenJob : public CoordinatorJob {
 public:
  HandwrittenJob(const Workload& workload, const TxnOptions& txn, double seconds,
                 const std::atomic<bool>& interrupted)
      : workload_(workload),
        txn_(txn),
        nanoseconds_(static_cast<uint64_t>(seconds * 1e9)),
        interrupted_(interrupted) {}

  void start(Coordinator& coordinator) override {
    CHECK(coordinator.worker().scheduler().spawn([this, &coordinator] {
      status_ = run(coordinator);
      finished_ = true;
    }));
  }
  bool finished() const override { return finished_; }
  const Status& status() const { return status_; }
  double per_second() const { return per_second_; }

 private:
  // A record of the transaction under way.
  struct Operation {
    uint64_t input, hash;
    const Bucket* bucket;
    uint32_t place;  // in the bucket, of the entry to be looked at next
    Header* header;
    uint64_t updates;
    std::array<uint64_t, kStoredWords> stored;  // key length, key, row
  };

  Status run(Coordinator& coordinator);
  Status find_region(Coordinator& coordinator, Session& session);
  Status write_once(Session& session) const;
  bool execute(Random& random, uint64_t ctts);
  bool locate(Operation& operation) const;
  bool lock(Operation& operation, uint64_t ctts) const;
  bool read(Operation& operation) const;
  void log(std::span<const Operation> operations, uint64_t ctts);
  static void update(Operation& operation, uint64_t stamp);

  const Workload& workload_;
  const TxnOptions txn_;
  const uint64_t nanoseconds_;
  const std::atomic<bool>& interrupted_;
  std::byte* base_ = nullptr;  // of node 0's region
  std::byte* ring_ = nullptr;
  uint64_t logged_ = 0;
  TableId table_ = kNoTable;
  CachedRoot root_;
  bool finished_ = false;
  double per_second_ = 0;
  Status status_;
};

Status HandwrittenJob::run(Coordinator& coordinator) {
  Session session(coordinator);
  RDMACC_RETURN_IF_ERROR(find_region(coordinator, session));
  RDMACC_RETURN_IF_ERROR(write_once(session));
  Endpoint& endpoint = coordinator.worker().endpoint();
  TimestampClock clock(endpoint);
  Random random(1);
  uint64_t committed = 0;
  const uint64_t start_ns = endpoint.now_ns();
  uint64_t elapsed_ns = 0;
  while (elapsed_ns < nanoseconds_ && !interrupted_.load()) {
    for (uint32_t i = 0; i < kTransactionsPerLook; i++) {
      if (!execute(random, clock.next())) {
        return Status(Code::kCorrupt, "a record is not what was loaded");
      }
    }
    committed += kTransactionsPerLook;
    elapsed_ns = endpoint.now_ns() - start_ns;
  }
  per_second_ = static_cast<double>(committed) * 1e9 / static_cast<double>(elapsed_ns);
  return Status();
}

// By the engine, so that everything that a transaction writes to is there.
Status HandwrittenJob::write_once(Session& session) const {
  RowView row;
  RDMACC_RETURN_IF_ERROR(session.begin(txn_));
  RDMACC_RETURN_IF_ERROR(session.get(table_, NumberKey(0), row));
  RDMACC_RETURN_IF_ERROR(session.put(table_, NumberKey(0), std::string(row.row)));
  return session.commit();
}

Status HandwrittenJob::find_region(Coordinator& coordinator, Session& session) {
  Result<TableMeta> table = session.find_table(workload_.table_specs().front());
  if (!table.ok()) return table.status();
  table_ = table->id;
  Worker& worker = coordinator.worker();
  VerbCounters counters;
  TableCache tables(worker, coordinator.topology());
  // The load's full groups may still be waiting for their split: what is read of the index here is
  // not to change any more.
  StorageClient storage(worker, coordinator.topology());
  const NodeId node = 0;
  RDMACC_RETURN_IF_ERROR(storage.wait_for_pending_splits(std::span(&node, 1), counters));
  Result<CachedTable*> cached = tables.get(table_, counters);
  if (!cached.ok()) return cached.status();
  RDMACC_RETURN_IF_ERROR(tables.load_root(**cached, 0, false, counters));
  root_ = (*cached)->roots[0];
  MappedMemory* mapped = worker.endpoint().mapped();
  if (mapped == nullptr) return Status(Code::kInvalidArgument, "the fabric maps no memory");
  base_ = mapped->region(0);
  ring_ = base_ + RegionLayout(coordinator.topology()).log_ring(worker.id()) + kCacheLineBytes;
  return Status();
}

bool HandwrittenJob::execute(Random& random, uint64_t ctts) {
  const TxnInputs inputs = workload_.draw(random);
  std::array<Operation, kYcsbOperationsMax> all;
  const std::span<Operation> operations(all.data(), inputs.count);
  for (uint32_t i = 0; i < inputs.count; i++) {
    Operation& operation = operations[i];
    operation.input = inputs.values[i];
    operation.hash = hash_key(table_, NumberKey(operation.input & ~Ycsb::kWriteBit));
    const uint64_t group = root_.groups[group_bits_of(operation.hash, root_.depth())];
    operation.bucket = reinterpret_cast<const Bucket*>(
        base_ + bucket_offset(group, home_bucket_of(operation.hash)));
    operation.place = 0;
    __builtin_prefetch(operation.bucket);
  }
  for (Operation& operation : operations) {
    if (!locate(operation)) return false;
  }
  for (Operation& operation : operations) {
    if (!lock(operation, ctts) || !read(operation)) return false;
  }
  log(operations, ctts);
  for (Operation& operation : operations) {
    if ((operation.input & Ycsb::kWriteBit) != 0) {
      update(operation, ctts);
    } else {
      store(&operation.header->lock, 0);
    }
  }
  return true;
}

// The next entry with the key's tag.
bool HandwrittenJob::locate(Operation& operation) const {
  while (true) {
    for (; operation.place < kEntriesPerBucket; operation.place++) {
      const uint64_t entry = load(&operation.bucket->entries[operation.place]);
      if (entry_tag(entry) != tag_of(operation.hash) || entry == 0) continue;
      operation.place++;
      auto* header = reinterpret_cast<Header*>(base_ + entry_offset(entry));
      __builtin_prefetch(header);
      __builtin_prefetch(header + 1);
      __builtin_prefetch(header + 2);
      operation.header = header;
      return true;
    }
    const uint64_t next = load(&operation.bucket->next);
    if (next == 0) return false;
    operation.bucket = reinterpret_cast<const Bucket*>(base_ + next);
    operation.place = 0;
  }
}

// Nothing else runs, so that a lock is free.
bool HandwrittenJob::lock(Operation& operation, uint64_t ctts) const {
  do {
    Header& header = *operation.header;
    uint64_t free = 0;
    if (!__atomic_compare_exchange_n(&header.lock, &free, ctts, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
      return false;
    }
    if (load(&header.key_hash) == operation.hash && header.table == table_) return true;
    store(&header.lock, 0);
  } while (locate(operation));
  return false;
}

bool HandwrittenJob::read(Operation& operation) const {
  const auto* record = reinterpret_cast<const uint64_t*>(operation.header + 1);
  for (size_t i = 0; i < kStoredWords; i++) operation.stored[i] = load(record + i);
  const auto* bytes = reinterpret_cast<const char*>(operation.stored.data());
  const uint64_t number = operation.input & ~Ycsb::kWriteBit;
  const std::string_view key(bytes + kKeyLengthBytes, kKeyBytes);
  RowView row;
  row.found = key == std::string_view(NumberKey(number));
  row.row = std::string_view(key.data() + kKeyBytes, kRecordBytes);
  if (!Ycsb::read_record(number, row, kRecordBytes, operation.updates).ok()) return false;
  if ((operation.input & Ycsb::kWriteBit) == 0) return true;
  char* const changed = reinterpret_cast<char*>(operation.stored.data()) + kKeyLengthBytes;
  Ycsb::write_record(number, operation.updates + 1, kRecordBytes, changed + kKeyBytes);
  return true;
}

// New rows with their addresses, stamp and checksum, in one piece, as a ring has them.
void HandwrittenJob::log(std::span<const Operation> operations, uint64_t ctts) {
  std::array<uint64_t, 4 + kYcsbOperationsMax*(1 + kStoredWords)> entry;
  size_t words = 3;
  for (const Operation& operation : operations) {
    if ((operation.input & Ycsb::kWriteBit) == 0) continue;
    entry[words++] = static_cast<uint64_t>(reinterpret_cast<std::byte*>(operation.header) - base_);
    for (const uint64_t word : operation.stored) entry[words++] = word;
  }
  if (words == 3) return;
  entry[0] = words;
  entry[1] = ctts;
  entry[2] = XXH3_64bits(entry.data() + 3, (words - 3) * sizeof(uint64_t));
  if ((logged_ + words) * sizeof(uint64_t) > kLogRingBytes) logged_ = 0;
  auto* place = reinterpret_cast<uint64_t*>(ring_) + logged_;
  for (size_t i = 0; i < words; i++) store(place + i, entry[i]);
  logged_ += words;
}

void HandwrittenJob::update(Operation& operation, uint64_t stamp) {
  Header& header = *operation.header;
  store(&header.wts, stamp);
  auto* record = reinterpret_cast<uint64_t*>(&header + 1);
  for (size_t i = 0; i < kStoredWords; i++) store(record + i, operation.stored[i]);
  store(&header.lock, 0);
}

}  // namespace

Result<double> handwritten_transactions_per_second(uint64_t records, double seconds,
                                                   const std::atomic<bool>& interrupted) {
  BenchOptions options;
  options.workload = "ycsb";
  options.nodes = 1;
  options.protocol = Protocol::kNowait;
  options.memory_mb += records * kNodeBytesPerRecord >> 20;
  YcsbOptions ycsb;
  ycsb.records = records;
  ycsb.history = 0;
  Ycsb workload(ycsb, options.workload_cluster());
  Result<std::unique_ptr<BenchCluster>> cluster = BenchCluster::start(options, interrupted);
  if (!cluster.ok()) return cluster.status();
  TxnOptions txn;
  txn.protocol = options.protocol;
  LoadJob load(workload, txn, workload.load_parts(), interrupted);
  CoordinatorJob* const loads[] = {&load};
  RDMACC_RETURN_IF_ERROR((*cluster)->run(loads));
  RDMACC_RETURN_IF_ERROR(load.status());
  if (interrupted.load()) return Status(Code::kCancelled, "interrupted");  // loaded in part
  HandwrittenJob job(workload, txn, seconds, interrupted);
  CoordinatorJob* const jobs[] = {&job};
  RDMACC_RETURN_IF_ERROR((*cluster)->run(jobs));
  RDMACC_RETURN_IF_ERROR(job.status());
  return job.per_second();
}

}  // namespace rdmacc
