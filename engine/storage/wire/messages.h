#pragma once
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/storage/layout/region_layout.h"
#include "rdma/rpc/rpc.h"

// Method numbers of every RPC of the engine, and the bytes of requests and replies: a flat
// little-endian encoding, parsed with bounds checks because remote bytes are not trusted.

namespace rdmacc {

enum Method : MethodId {
  // storage service (engine/storage/wire/storage_service.h)
  kMethodAllocate = 1,
  kMethodFree = 2,
  kMethodExtendBucket = 3,
  kMethodCreateTable = 4,
  kMethodDropTable = 5,
  kMethodFindTable = 6,
  kMethodReserveTableId = 7,
  kMethodNodeStatistics = 8,
  kMethodWaitForPendingSplits = 9,
  kMethodLockedHeaders = 10,
  kMethodListTables = 15,
  kMethodTableSize = 16,
  kMethodAudit = 17,
  kMethodBackLogRing = 18,
  kMethodReserveBlocks = 19,
  kMethodReserveSlots = 21,
  kMethodSplitSoon = 22,
  kMethodExpectRows = 23,
  kMethodLoadRows = 24,
  // transaction stages (engine/txn/remote/carry_out.h)
  kMethodStage = 20,
  // the log on disk (engine/durable/node_log.h)
  kMethodFlushLog = 50,     // of a coordinator: its entry at a position is on disk
  kMethodAppendToLog = 51,  // of a node: writes of a transaction of which it may have no entry
  kMethodLogCovered = 52,   // of a node: it has these transactions on its own disk
  kMethodLogResolved = 53,  // of node 0: what it had appended is installed
  kMethodLogState = 54,
  kMethodLogTables = 55,
  kMethodFlushOfDead = 56,  // of node 0: a dead coordinator's entry is on disk, if it is there
  // of node 0, or a coordinator: how a transaction that another system decides has ended is on disk
  kMethodLogDecided = 57,
  kMethodLogPrepared = 58,  // of node 0: which of them a log holds
  kMethodLogOutcomes = 59,  // of node 0: how they ended, by this log
  kMethodLogAnew = 60,      // of a node: it has lost its memory, and all get their rows from disk
  // resolution (engine/log/resolve.h)
  kMethodReleaseLocksOf = 30,
  // sweep of reader counts (engine/log/reader_count_sweep.h)
  kMethodClearReaderCounts = 32,
};

class MessageWriter {
 public:
  explicit MessageWriter(std::vector<std::byte>& out) : out_(out) {}
  void u8(uint8_t v) { raw(&v, 1); }
  void u16(uint16_t v) { raw(&v, 2); }
  void u32(uint32_t v) { raw(&v, 4); }
  void u64(uint64_t v) { raw(&v, 8); }
  void bytes(std::string_view v) {
    u32(static_cast<uint32_t>(v.size()));
    raw(v.data(), v.size());
  }
  void raw(const void* from, size_t n) {
    if (n > 0) std::memcpy(room(n), from, n);
  }
  // To be filled by the caller before anything else is written.
  std::byte* room(size_t n) {
    const size_t at = out_.size();
    out_.resize(at + n);
    return out_.data() + at;
  }
  // Fields of a fixed layout, without padding, in one piece.
  template <typename Layout>
  void layout(const Layout& fields) {
    static_assert(std::has_unique_object_representations_v<Layout>);
    raw(&fields, sizeof(fields));
  }
  size_t size() const { return out_.size(); }

 private:
  std::vector<std::byte>& out_;
};

// After the first read past the end every read gives 0 and ok() is false.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> in) : in_(in) {}
  uint8_t u8() { return layout<uint8_t>(); }
  uint16_t u16() { return layout<uint16_t>(); }
  uint32_t u32() { return layout<uint32_t>(); }
  uint64_t u64() { return layout<uint64_t>(); }
  // Points into the message.
  std::string_view bytes() { return text(u32()); }
  std::string_view text(size_t n) {
    const std::span<const std::byte> view = raw(n);
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }
  std::span<const std::byte> raw(size_t n) {
    if (!ok_ || n > in_.size() - at_) {
      ok_ = false;
      return {};
    }
    const std::span<const std::byte> view = in_.subspan(at_, n);
    at_ += n;
    return view;
  }
  template <typename Layout>
  Layout layout() {
    static_assert(std::has_unique_object_representations_v<Layout>);
    Layout fields{};
    const std::span<const std::byte> view = raw(sizeof(fields));
    if (view.size() == sizeof(fields)) std::memcpy(&fields, view.data(), sizeof(fields));
    return fields;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && at_ == in_.size(); }

 private:
  std::span<const std::byte> in_;
  size_t at_ = 0;
  bool ok_ = true;
};

static_assert(std::endian::native == std::endian::little);

}  // namespace rdmacc
