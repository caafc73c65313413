#include "rdma/fabric/memory_region.h"

#include <bit>

namespace rdmacc {
namespace {

// Small blocks are the common case: one registration serves several of them.
constexpr size_t kBlocksPerSlab = 8;

size_t class_of(size_t bytes) {
  const size_t blocks = (bytes + RegisteredPool::kBlockBytes - 1) / RegisteredPool::kBlockBytes;
  return static_cast<size_t>(std::bit_width(std::bit_ceil(blocks < 1 ? 1 : blocks)) - 1);
}

}  // namespace

std::byte* RegisteredPool::take(size_t bytes) {
  CHECK(bytes > 0);
  const size_t size_class = class_of(bytes);
  if (size_class >= kClasses) return nullptr;
  std::vector<std::byte*>& free = free_[size_class];
  if (free.empty()) {
    const size_t block_bytes = kBlockBytes << size_class;
    const size_t blocks = size_class == 0 ? kBlocksPerSlab : 1;
    Result<std::byte*> slab = endpoint_.allocate_registered(block_bytes * blocks);
    if (!slab.ok()) return nullptr;
    for (size_t i = blocks; i > 0; --i) free.push_back(*slab + (i - 1) * block_bytes);
  }
  std::byte* block = free.back();
  free.pop_back();
  return block;
}

void RegisteredPool::give_back(std::byte* block, size_t bytes) {
  CHECK(block != nullptr);
  const size_t size_class = class_of(bytes);
  CHECK(size_class < kClasses);
  free_[size_class].push_back(block);
}

VerbArena::~VerbArena() {
  for (const Block& block : blocks_) pool_.give_back(block.start, block.bytes);
}

std::byte* VerbArena::allocate_in_new_block(size_t bytes) {
  const size_t block_bytes =
      bytes <= RegisteredPool::kBlockBytes ? RegisteredPool::kBlockBytes : std::bit_ceil(bytes);
  std::byte* block = pool_.take(block_bytes);
  if (block == nullptr) return nullptr;
  last_ = Block{block, block_bytes};
  blocks_.push_back(last_);
  used_in_last_ = bytes;
  allocated_ += bytes;
  return block;
}

void VerbArena::reset_blocks() {
  // The first block stays for the next transaction unless it was made for one large buffer.
  const size_t keep =
      !blocks_.empty() && blocks_.front().bytes == RegisteredPool::kBlockBytes ? 1 : 0;
  for (size_t i = keep; i < blocks_.size(); ++i) {
    pool_.give_back(blocks_[i].start, blocks_[i].bytes);
  }
  blocks_.resize(keep);
  last_ = keep > 0 ? blocks_.front() : Block();
  used_in_last_ = 0;
  allocated_ = 0;
}

}  // namespace rdmacc
