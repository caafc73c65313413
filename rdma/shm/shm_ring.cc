#include "rdma/shm/shm_ring.h"

#include <algorithm>
#include <cstring>

namespace rdmacc {
namespace {

// So much of a ring is fetched ahead: a few short datagrams.
constexpr uint64_t kAheadBytes = 6 * kCacheLineBytes;

// Takes the line over from another processor's cache. Not __builtin_prefetch(): for processors that
// need not have this instruction that only copies the line.
void fetch_to_write([[maybe_unused]] const std::byte* line) {
#ifdef __x86_64__
  asm volatile("prefetchw %0" : : "m"(*line));
#endif
}

}  // namespace

bool ShmRing::push(ShmIncarnations incarnations, std::span<const std::byte> datagram) {
  CHECK(!datagram.empty() && datagram.size() <= kShmDatagramBytesMax);
  uint64_t tail = header_.tail.load(std::memory_order_relaxed);
  const uint64_t needed = record_bytes(datagram.size());
  const uint64_t to_end = kShmRingBytes - tail % kShmRingBytes;
  const uint64_t skipped = to_end < needed ? to_end : 0;
  const auto fits = [&] {
    const uint64_t used = tail - head_seen_;
    return used <= kShmRingBytes && used + skipped + needed <= kShmRingBytes;
  };
  if (!fits()) head_seen_ = header_.head.load(std::memory_order_acquire);
  if (tail - head_seen_ > kShmRingBytes || tail % 8 != 0) {
    // The peer wrote garbage here. Each side puts its own index right: see front().
    header_.tail.store((head_seen_ + 7) & ~7ull, std::memory_order_release);
    return false;
  }
  if (!fits()) return false;
  if (skipped > 0) {
    std::memcpy(bytes_ + tail % kShmRingBytes, &kSkip, sizeof(kSkip));
    tail += skipped;
  }
  std::byte* at = bytes_ + tail % kShmRingBytes;
  const Record record{static_cast<uint32_t>(datagram.size()), incarnations, 0};
  std::memcpy(at, &record, sizeof(record));
  std::memcpy(at + sizeof(record), datagram.data(), datagram.size());
  header_.tail.store(tail + needed, std::memory_order_seq_cst);
  // The next one's place is in the consumer's cache still.
  for (uint64_t ahead = 0; ahead < kAheadBytes; ahead += kCacheLineBytes) {
    fetch_to_write(bytes_ + (tail + needed + ahead) % kShmRingBytes);
  }
  return true;
}

void ShmRing::prefetch() const {
  const uint64_t head = header_.head.load(std::memory_order_relaxed);
  const uint64_t bytes = std::min(header_.tail.load(std::memory_order_relaxed) - head, kAheadBytes);
  for (uint64_t ahead = 0; ahead < bytes; ahead += kCacheLineBytes) {
    __builtin_prefetch(bytes_ + (head + ahead) % kShmRingBytes);
  }
}

std::span<const std::byte> ShmRing::front(ShmIncarnations incarnations) {
  const uint64_t tail = header_.tail.load(std::memory_order_acquire);
  uint64_t head = header_.head.load(std::memory_order_relaxed);
  while (head != tail) {
    const uint64_t offset = head % kShmRingBytes;
    const uint64_t available = tail - head;
    if (available > kShmRingBytes || head % 8 != 0 || tail % 8 != 0) break;
    uint32_t bytes;
    std::memcpy(&bytes, bytes_ + offset, sizeof(bytes));
    if (bytes == kSkip) {
      if (available < kShmRingBytes - offset) break;
      head += kShmRingBytes - offset;
      continue;
    }
    if (bytes == 0 || bytes > kShmDatagramBytesMax || record_bytes(bytes) > available ||
        record_bytes(bytes) > kShmRingBytes - offset) {
      break;
    }
    Record record;
    std::memcpy(&record, bytes_ + offset, sizeof(record));
    if (record.incarnations == incarnations) {
      header_.head.store(head, std::memory_order_release);
      return std::span<const std::byte>(bytes_ + offset + sizeof(record), bytes);
    }
    head += record_bytes(bytes);
  }
  // Nothing to receive, or bytes that do not parse: whatever was there is lost.
  header_.head.store(tail, std::memory_order_release);
  return {};
}

void ShmRing::pop() {
  const uint64_t head = header_.head.load(std::memory_order_relaxed);
  uint32_t bytes;
  std::memcpy(&bytes, bytes_ + head % kShmRingBytes, sizeof(bytes));
  // Checked by front(); a sender that breaks the rules can only spoil its own ring.
  if (bytes == 0 || bytes > kShmDatagramBytesMax) return discard();
  header_.head.store(head + record_bytes(bytes), std::memory_order_release);
}

void ShmRing::discard() {
  header_.head.store(header_.tail.load(std::memory_order_acquire), std::memory_order_release);
}

}  // namespace rdmacc
