#pragma once
#include <span>
#include <vector>

#include "engine/protocols/calvin/order.h"
#include "engine/storage/owner/owned_region.h"

namespace rdmacc {

// A node's own view of its order area (RegionLayout): what it and others have written there. It
// outlives the node's process, and all that a restarted node needs to go on is in it.
//
// Batches, forwarded values and the redo record are blocks:
//
//   tag 8 | bytes 8 | word 8 | checksum 8 | bytes, padded to 8
//
// The tag says what the block is of, and is written last, so that a block with the right tag is
// whole. Blocks that others wrote are checked before they are believed.
class OrderArea {
 public:
  static constexpr uint64_t kBlockHeaderBytes = 32;
  static constexpr uint64_t kWordOffset = 16;
  struct Block {
    uint64_t word = 0;
    std::vector<std::byte> bytes;
  };

  OrderArea(const RegionLayout& layout, const OwnedRegion& region)
      : layout_(layout), region_(region) {}

  static std::vector<std::byte> make_block(uint64_t tag, uint64_t word,
                                           std::span<const std::byte> bytes);
  // Is it a block with this tag, as a peer sends it?
  static bool sound(std::span<const std::byte> block, uint64_t tag);

  // Replaces the block at `place`; a crash leaves it whole, old or new, or no block.
  void store(uint64_t place, std::span<const std::byte> block) const;
  bool holds(uint64_t place, uint64_t tag) const { return region_.load(place) == tag; }
  // The word of a block that is known to be whole.
  uint64_t word_of(uint64_t place) const { return region_.load(place + kWordOffset); }
  // False when there is no sound block with this tag (0: any).
  bool load(uint64_t place, uint64_t tag, uint64_t place_bytes, Block& block) const;
  // The bytes of a block of ours, header included; it must be there.
  std::vector<std::byte> image(uint64_t place, uint64_t tag, uint64_t place_bytes) const;

  Position progress() const { return Position::of(region_.load(layout_.order)); }
  void set_progress(Position position) const { region_.store(layout_.order, position.word()); }
  // Microseconds of the last stamp of the epochs that have been executed.
  uint64_t end_us() const { return region_.load(layout_.order + 8); }
  void set_end_us(uint64_t us) const { region_.store(layout_.order + 8, us); }
  uint64_t progress_of(NodeId node) const { return region_.load(layout_.order_progress(node)); }
  void raise_progress_of(NodeId node, uint64_t word) const {
    if (word > progress_of(node)) region_.store(layout_.order_progress(node), word);
  }

  const RegionLayout& layout() const { return layout_; }
  const OwnedRegion& region() const { return region_; }

 private:
  const RegionLayout layout_;
  const OwnedRegion& region_;
};

}  // namespace rdmacc
