// Guests: transactions of other coordinators that read for one that is inside the gate, and end by
// lending it what they have read. They take no part in the gate, lock and write nothing: the gate's
// line of their host speaks for them, and so does its epoch, as long as they end before it does.
#include <cstring>

#include "engine/txn/transaction/transaction.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// What is lent: this, accesses, `tables` times LentTable, then the reads or blocks of each.
struct LentHeader {
  uint64_t clock = 0;     // whatever was seen is earlier
  uint64_t accesses = 0;  // gap headers of scans, and what was looked up
  uint64_t tables = 0;
};
struct LentTable {
  enum Kind : uint32_t {
    kScanned,  // reads
    kByKeys,   // reads, of no scan
    kBlocks,   // of a scan
  };
  TableId table = kNoTable;
  Kind kind = kScanned;
  uint64_t count = 0;
};
static_assert(std::is_trivially_copyable_v<Access> && std::is_trivially_copyable_v<ScannedRead> &&
              std::is_trivially_copyable_v<ReadBlock>);

class Out {
 public:
  explicit Out(std::byte* to) : to_(to) {}  // nullptr: bytes are counted
  template <typename T>
  void put(std::span<const T> objects) {
    if (to_ != nullptr && !objects.empty())
      memcpy(to_ + bytes_, objects.data(), objects.size_bytes());
    bytes_ += objects.size_bytes();
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* const to_;
  size_t bytes_ = 0;
};

class In {
 public:
  explicit In(std::span<const std::byte> from) : from_(from) {
    CHECK(reinterpret_cast<uintptr_t>(from.data()) % alignof(Access) == 0);
  }
  template <typename T>
  std::span<const T> take(uint64_t count) {
    CHECK(count <= from_.size() / sizeof(T));
    const std::span<const T> taken(reinterpret_cast<const T*>(from_.data()), count);
    from_ = from_.subspan(taken.size_bytes());
    return taken;
  }

 private:
  std::span<const std::byte> from_;
};

}  // namespace

bool Transaction::may_host() const {
  if (!parameters_.rules->may_have_guests()) return false;
  // An owner serves a transaction at the request of its own coordinator alone.
  if (parameters_.plan.asks_owners(Stage::kRead)) return false;
  if (needs_current_reads_ || has_writes() || has_to_let_go()) return false;
  for (const Access& access : accesses_) {
    if (access.to_give_back()) return false;
  }
  return true;
}

HostTicket Transaction::host() {
  CHECK(started() && may_host());
  watch_others(coordinator_.engine.topology.workers_max);
  hosted_ = true;  // a watch that begins later says nothing of what they have read
  scanned_ = scanned_table_ = true;
  return {.ctts = stamps_.ctts,
          .epoch = gate_entry_.epoch,
          .protocol = static_cast<uint16_t>(parameters_.rules->protocol),
          .stages = parameters_.plan.code()};
}

void Transaction::start_as_guest(const HostTicket& ticket) {
  CHECK(!started() && ticket.ctts != 0);
  start_us_ = coordinator_.engine.worker.endpoint().now_us();
  coordinator_.engine.enter_era(era_of(ticket.epoch));
  stamps_.ctts = ticket.ctts;
  guest_ = true;
}

// Nothing under rules that validate nothing: no stamp that was seen is later than the ctts.
size_t Transaction::lend(std::byte* to) const {
  CHECK(guest_ && !has_writes());
  if (!parameters_.rules->validate) return 0;
  LentHeader header{.clock = coordinator_.engine.clock.last()};
  std::vector<Access> accesses;
  std::vector<LentTable> tables;
  std::vector<std::span<const ScannedRead>> reads;
  std::vector<std::span<const ReadBlock>> blocks;
  for (const Access& access : accesses_) {
    CHECK(!access.to_give_back());
    if (access.read) accesses.push_back(access);
  }
  const auto lend_to = [&tables](LentTable::Kind kind, auto& lent) {
    return [&tables, &lent, kind](TableId table, auto some) {
      const bool goes_on =
          !tables.empty() && tables.back().table == table && tables.back().kind == kind;
      if (!goes_on) tables.push_back({.table = table, .kind = kind});
      tables.back().count += some.size();
      lent.push_back(some);
      return true;
    };
  };
  accesses_.for_rows(lend_to(LentTable::kByKeys, reads));
  accesses_.for_scanned_reads(lend_to(LentTable::kScanned, reads));
  accesses_.for_blocks(lend_to(LentTable::kBlocks, blocks));
  if (accesses.empty() && tables.empty()) return 0;
  header.accesses = accesses.size();
  header.tables = tables.size();
  Out out(to);
  out.put(std::span<const LentHeader>(&header, 1));
  out.put(std::span<const Access>(accesses));
  out.put(std::span<const LentTable>(tables));
  for (const auto& some : reads) out.put(some);
  for (const auto& some : blocks) out.put(some);
  return out.bytes();
}

// Of tables that are still its scans' own it keeps them as they are, and of others, header by
// header, among all that it has met.
Status Transaction::borrow(std::span<const std::byte> lent, std::shared_ptr<const void> memory) {
  CHECK(started() && !guest_ && !prepared_);
  if (memory != nullptr) borrowed_.push_back(std::move(memory));
  In in(lent);
  const LentHeader header = in.take<LentHeader>(1)[0];
  coordinator_.engine.clock.observe(header.clock);
  Status status;
  Access* merged = nullptr;
  const auto keep = [&](const Access& access) {
    accesses_.find(access);  // a key may have been looked up more than once
    const Status kept = merge(access, &merged);
    if (status.ok()) status = kept;
  };
  for (const Access& access : in.take<Access>(header.accesses)) {
    if (access.gap) accesses_.begin_scan(access.table);
    if (access.gap && accesses_.takes_reads(access.table)) {
      accesses_.add_gap_again(access);
    } else {
      keep(access);
    }
    reads_++;
  }
  const auto tables = in.take<LentTable>(header.tables);
  for (const LentTable& each : tables) {
    if (each.kind != LentTable::kByKeys) accesses_.begin_scan(each.table);
    if (each.kind == LentTable::kBlocks) {
      const auto blocks = in.take<ReadBlock>(each.count);
      for (const ReadBlock& block : blocks) reads_ += block.sums.rows;
      accesses_.borrow_blocks(each.table, blocks);
      continue;
    }
    const auto reads = in.take<ScannedRead>(each.count);
    reads_ += reads.size();
    if (each.kind == LentTable::kByKeys) {
      accesses_.borrow_rows(each.table, reads);
    } else if (accesses_.takes_reads(each.table)) {
      accesses_.borrow_reads(each.table, reads);
    } else {
      for (const ScannedRead& read : reads) {
        if (!read.header.null()) keep(read.access(each.table));
      }
    }
  }
  note_failure(status);
  return status;
}

void Transaction::finish_as_guest() {
  for (const Access& access : accesses_) CHECK(!access.to_give_back());
  coordinator_.engine.worker.scheduler().stay(false);
  guest_ = false;
  coordinator_.stats.verbs.add(counters_);
  coordinator_.stats.allocation_verbs.add(allocation_counters_);
  coordinator_.engine.worker.counters().add(counters_);
}

}  // namespace rdmacc
