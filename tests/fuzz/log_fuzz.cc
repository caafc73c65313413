// Any bytes as a log record, and as a placement of a log entry: what a backup is sent, and what
// resolution finds in the rings of the dead.
#include "engine/log/log_record.h"
#include "engine/log/log_ring.h"
#include "tests/fuzz/heap_endpoint.h"
#include "tests/fuzz/reread.h"

namespace rdmacc {
namespace {

constexpr WorkerId kWriter = 3;
constexpr NodeId kOwn = 1;

void record(std::span<const std::byte> bytes) {
  Result<LogRecord> first = decode_log_record(bytes);
  if (!first.ok()) return;
  std::vector<std::byte> once, twice;
  encode(*first, once);
  Result<LogRecord> second = decode_log_record(once);
  CHECK(second.ok());
  encode(*second, twice);
  CHECK(once == twice);
}

void placement(std::span<const std::byte> bytes) {
  static HeapEndpoint endpoint;
  static RegisteredPool pool(endpoint);
  static VerbArena arena(pool);
  arena.reset();
  MessageReader in(bytes);
  Result<LogPlacement> placed = decode_placement(in, kWriter, kOwn, arena);
  if (!placed.ok()) return;
  // It stays within the ring, whatever its sender has asked for.
  CHECK(placed->position % kLogRingBytes + placed->entry.size() <= kLogRingBytes);
  CHECK(placed->node == kOwn && placed->ring_of == kWriter);
}

}  // namespace
}  // namespace rdmacc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] % 2 == 0) {
    rdmacc::record(bytes);
  } else {
    rdmacc::placement(bytes);
  }
  return 0;
}
