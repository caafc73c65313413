#pragma once
#include <span>

#include "engine/txn/driver/table_cache.h"
#include "engine/txn/stages/scan_work.h"

namespace rdmacc {

// Is each group of a root array at all places of one hash range, and at no other? Not so when the
// array was read in the middle of a split's publication: then the depth of a group cannot be told
// from its places.
bool is_partition(std::span<const uint64_t> groups);

// The hash ranges of a node's groups, one after the other: all of the hash space, each part once.
// Nothing is planned ahead, so that the first range of a large index costs no more than that of a
// small one, and the array may be read anew meanwhile: groups are split and never joined, so that
// the rest of the space begins where ranges of the new one do.
class RangeWalk {
 public:
  RangeWalk() = default;
  // That has come to this range.
  explicit RangeWalk(HashRange next) : bits_(next.bits), depth_(next.depth) {}
  HashRange position() const { return {bits_, depth_}; }
  bool at_start() const { return bits_ == 0 && depth_ == 0 && !ended_; }
  bool ended() const { return ended_; }
  // Of a group, where the array tells which. Any range is right that is not deeper than its group:
  // one that covers a part of it has it halved, at the price of one READ of a gap header each time.
  HashRange next(CachedRoot& root);

 private:
  void prefetch(const CachedRoot& root) const;

  uint64_t bits_ = 0;  // the rest of the space begins with this range
  uint32_t depth_ = 0;
  bool ended_ = false;
};

// Where a walk over the ranges of all nodes is, node by node. It fits in a word, so that several
// scans can share one: each takes the next ranges, and CASes the word to where they end.
struct TableWalk {
  NodeId node = 0;
  RangeWalk ranges;  // of the node

  static TableWalk unpack(uint64_t word);
  uint64_t pack() const;
  // Behind the last range of its node it is at the first one of the next.
  void go_on();
};

}  // namespace rdmacc
