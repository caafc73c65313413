#pragma once
#include "engine/storage/layout/tuple.h"

namespace rdmacc {

// A record that does not fit its slot: an immutable block on the same node, new for each write,
// whose address (offset of this header, plus 48-bit node-less) is the record's first 8 bytes.
// The record's length is in the tuple's header; its bytes start behind this header.
struct OverflowHeader {
  uint64_t owner_ctts;  // of the transaction that allocated it; 0 = free
  uint64_t capacity;    // bytes behind this header
};
static_assert(sizeof(OverflowHeader) == 16);

static_assert(sizeof(OverflowHeader) == kVersionsSlotPlace);

constexpr uint64_t kOverflowBytesMax = 4 + kKeyBytesMax + kRowBytesMax + 8;

}  // namespace rdmacc
