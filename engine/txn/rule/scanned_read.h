#pragma once
#include "engine/txn/rule/access.h"

namespace rdmacc {

// A record that a scan has read and locks nothing of: as much of an Access as the read set needs,
// which such a scan fills by the million. The table is known where it is kept. No incarnation: a
// stamp is told of one version in a slot's life, and lives do not go back in stamps.
struct ScannedRead {
  GlobalAddress header;
  uint64_t read_wts = 0;
  uint64_t key_hash = 0;
  uint64_t lease = 0;

  explicit ScannedRead(const Access& access)
      : header(access.header),
        read_wts(access.read_wts),
        key_hash(access.key_hash),
        lease(access.lease) {}

  Access access(TableId table) const {
    Access access;
    access.header = header;
    access.key_hash = key_hash;
    access.read_wts = read_wts;
    access.locked_wts = read_wts;
    access.lease = lease;
    access.table = table;
    access.read = true;
    return access;
  }
};
static_assert(sizeof(ScannedRead) == 32);

// All rows of a table that a scan has read in a block of slots (scan_slots.h), in place of one
// ScannedRead each: the sums of what they were. A row's stamp only rises, so that another version
// of one of them makes another sum; rows that come or go change their gap headers, and the sum of
// hashes. Kept and validated as a whole.
struct ReadBlock {
  GlobalAddress first;
  uint32_t slots = 0;
  uint32_t slot_bytes = 0;
  uint64_t from_bits = 0;  // SlotBlock::from_bits
  struct Sums {
    uint64_t rows = 0, stamps = 0, hashes = 0;
    void add(uint64_t wts, uint64_t key_hash) {
      rows++;
      stamps += wts;
      hashes += key_hash;
    }
    bool operator==(const Sums&) const = default;
  } sums;
};

}  // namespace rdmacc
