#include "engine/protocols/calvin/order_area.h"

#include "engine/log/log_entry.h"

namespace rdmacc {
namespace {

struct BlockHeader {
  uint64_t tag;
  uint64_t bytes;
  uint64_t word;
  uint64_t checksum;  // of the block with this 0
};
static_assert(sizeof(BlockHeader) == OrderArea::kBlockHeaderBytes);
static_assert(offsetof(BlockHeader, word) == OrderArea::kWordOffset);

uint64_t checksum_of(std::span<const std::byte> block) {
  std::vector<std::byte> copy(block.begin(), block.end());
  memset(copy.data() + offsetof(BlockHeader, checksum), 0, sizeof(uint64_t));
  return log_payload_checksum(copy);
}

BlockHeader header_of(std::span<const std::byte> block) {
  BlockHeader header;
  memcpy(&header, block.data(), sizeof(header));
  return header;
}

}  // namespace

std::vector<std::byte> OrderArea::make_block(uint64_t tag, uint64_t word,
                                             std::span<const std::byte> bytes) {
  CHECK(tag != 0);
  std::vector<std::byte> block(sizeof(BlockHeader) + round_up(bytes.size(), 8));
  BlockHeader header{tag, bytes.size(), word, 0};
  if (!bytes.empty()) memcpy(block.data() + sizeof(header), bytes.data(), bytes.size());
  memcpy(block.data(), &header, sizeof(header));
  header.checksum = checksum_of(block);
  memcpy(block.data(), &header, sizeof(header));
  return block;
}

bool OrderArea::sound(std::span<const std::byte> block, uint64_t tag) {
  if (block.size() < sizeof(BlockHeader) || block.size() % 8 != 0) return false;
  const BlockHeader header = header_of(block);
  return header.tag == tag && header.bytes <= block.size() &&
         sizeof(BlockHeader) + round_up(header.bytes, 8) == block.size() &&
         header.checksum == checksum_of(block);
}

void OrderArea::store(uint64_t place, std::span<const std::byte> block) const {
  CHECK(block.size() >= sizeof(BlockHeader) && block.size() % 8 == 0);
  CHECK(place % 8 == 0 && header_of(block).tag != 0);
  std::vector<uint64_t> words(block.size() / 8);
  memcpy(words.data(), block.data(), block.size());
  region_.store(place, 0);
  region_.store_words(place + 8, words.data() + 1, words.size() - 1);
  region_.store(place, words[0]);
}

bool OrderArea::load(uint64_t place, uint64_t tag, uint64_t place_bytes, Block& block) const {
  CHECK(place % 8 == 0 && place_bytes >= sizeof(BlockHeader));
  const uint64_t found = region_.load(place);
  if (found == 0 || (tag != 0 && found != tag)) return false;
  const uint64_t bytes = region_.load(place + offsetof(BlockHeader, bytes));
  if (bytes > place_bytes - sizeof(BlockHeader)) return false;
  std::vector<uint64_t> words((sizeof(BlockHeader) + round_up(bytes, 8)) / 8);
  region_.load_words(place, words.data(), words.size());
  const auto image = std::as_bytes(std::span(words));
  if (!sound(image, found)) return false;
  block.word = words[2];
  block.bytes.assign(image.begin() + sizeof(BlockHeader),
                     image.begin() + static_cast<ptrdiff_t>(sizeof(BlockHeader) + bytes));
  return true;
}

std::vector<std::byte> OrderArea::image(uint64_t place, uint64_t tag, uint64_t place_bytes) const {
  Block block;
  CHECK(load(place, tag, place_bytes, block));
  return make_block(tag, block.word, block.bytes);
}

}  // namespace rdmacc
