// A placement as an RPC Log request carries it (engine/log/log_ring.h).
#include <cstring>

#include "engine/log/log_ring.h"

namespace rdmacc {
namespace {

struct PlacementFields {
  uint64_t position, head_position, incarnation, salt, lock_ctts, entry_bytes;
};

}  // namespace

void encode_placement(const LogPlacement& placement, MessageWriter& out) {
  CHECK(placement.entry.size() >= 64 && placement.head.position <= placement.position);
  out.layout(PlacementFields{placement.position, placement.head.position,
                             placement.head.incarnation, placement.head.salt, placement.lock_ctts,
                             placement.entry.size()});
  out.raw(placement.entry.data(), placement.entry.size());
}

Result<LogPlacement> decode_placement(MessageReader& in, WorkerId from, NodeId own,
                                      VerbArena& arena) {
  LogPlacement placement;
  placement.node = own;
  placement.ring_of = from;
  const auto fields = in.layout<PlacementFields>();
  placement.position = fields.position;
  placement.head.position = fields.head_position;
  placement.head.incarnation = fields.incarnation;
  placement.head.salt = fields.salt;
  placement.lock_ctts = fields.lock_ctts;
  const std::span<const std::byte> entry = in.raw(fields.entry_bytes);
  const uint64_t place = placement.position % kLogRingBytes;
  if (!in.ok() || entry.size() < 64 || entry.size() % 64 != 0 || place % 64 != 0 ||
      entry.size() > kLogRingBytes - place || placement.head.position > placement.position) {
    return Status(Code::kCorrupt, "log placement: not an entry of this ring");
  }
  LogEntryHeader header;
  std::memcpy(&header, entry.data(), sizeof(header));
  if (header.position != placement.position || header.lock_ctts != placement.lock_ctts ||
      header.incarnation != placement.head.incarnation ||
      log_entry_bytes(header.stored_bytes) != entry.size()) {
    return Status(Code::kCorrupt, "log placement: entry and place disagree");
  }
  std::byte* copy = arena.allocate(entry.size());
  if (copy == nullptr) return out_of_registered_memory();
  std::memcpy(copy, entry.data(), entry.size());
  placement.entry = {copy, entry.size()};
  return placement;
}

}  // namespace rdmacc
