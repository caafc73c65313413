#pragma once
#include <vector>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/stages/scan_work.h"

namespace rdmacc {

// The records of a part of a scan, once it is known where they are: offsets of their slots.
class ScanEntries {
 public:
  ScanEntries(StageContext& context, ScanWork& work, const CachedTable& table)
      : context_(context), work_(work), table_(table) {}

  // Where the records are; the caller's to fill.
  std::vector<uint64_t>& offsets() { return offsets_; }
  // Inlined by force, as all that only prefetches (mapped_memory.h): GCC 12 drops a call of it.
  [[gnu::always_inline]] void prefetch() {
    const size_t bytes = bytes_of_each();
    DoorbellBatch batch = context_.batch();
    for (const uint64_t entry : offsets_) batch.prefetch(work_.address(entry), bytes);
  }
  // From its slot's beginning on, so much of each is read.
  size_t bytes_of_each() const {
    return sizeof(Header) + (reads_rows() ? head_bytes() : table_.record_size);
  }
  // Reads each by the protocol into the work's rows or tuples. `again`: one was no record any more,
  // so that offsets() is to be filled anew.
  Status read(bool& again);

 private:
  bool reads_rows() const {
    return work_.takes_rows && context_.rules.read.scan != nullptr &&
           context_.engine.worker.scheduler().port() != Endpoint::Port::kPosted;
  }
  // Of each record that read_rows() reads.
  uint32_t head_bytes() const {
    return work_.headers_only ? 0 : std::min(table_.record_size, work_.record_head_bytes);
  }
  Status read_rows(bool& all_read);
  bool heads_suffice(uint32_t bytes) const;
  Status read_tuples(bool& again);
  Status read_some(size_t begin, size_t end, bool& again);
  Status fetch_overflow(size_t begin);
  Status complete(uint32_t flags, std::string_view& record, uint64_t& overflow,
                  DoorbellBatch& batch);
  Status take_as_stored(size_t begin, bool& again);

  StageContext& context_;
  ScanWork& work_;
  const CachedTable& table_;
  std::vector<uint64_t> offsets_;
};

}  // namespace rdmacc
