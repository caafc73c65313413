#include "engine/storage/owner/owner_writer.h"

#include <algorithm>
#include <atomic>

namespace rdmacc {

namespace {
constexpr size_t kBufferWords = RegisteredPool::kBlockBytes / sizeof(uint64_t);
}

Status OwnerWriter::prepare() {
  failed_ = Status();
  if (worker_ == nullptr || buffer_ != nullptr) return Status();
  buffer_ = reinterpret_cast<uint64_t*>(worker_->pool().take(RegisteredPool::kBlockBytes));
  if (buffer_ == nullptr) return out_of_registered_memory();
  batch_ = std::make_unique<DoorbellBatch>(worker_->scheduler(), worker_->counters());
  return Status();
}

uint64_t* OwnerWriter::room(size_t words) {
  CHECK(buffer_ != nullptr && words <= kBufferWords);
  if (used_words_ + words > kBufferWords) static_cast<void>(flush());
  uint64_t* const at = buffer_ + used_words_;
  used_words_ += words;
  return at;
}

void OwnerWriter::store_words(uint64_t offset, const uint64_t* words, size_t count) {
  CHECK(offset % 8 == 0 && words != nullptr && count > 0);
  if (worker_ == nullptr) return region_.store_words(offset, words, count);
  if (!failed_.ok()) return;  // a later store must not overtake one that failed
  uint64_t* const local = room(count);
  std::copy_n(words, count, local);
  batch_->write(region_.address(offset), local, count * sizeof(uint64_t));
}

Status OwnerWriter::flush() {
  if (worker_ == nullptr) return Status();
  if (failed_.ok()) failed_ = batch_->execute();
  used_words_ = 0;
  return failed_;
}

Status OwnerWriter::compare_swap(uint64_t offset, uint64_t expected, uint64_t desired,
                                 uint64_t* seen) {
  CHECK(offset % 8 == 0 && seen != nullptr);
  if (worker_ == nullptr) {
    *seen = expected;
    auto* word = reinterpret_cast<uint64_t*>(region_.base() + offset);
    std::atomic_ref<uint64_t>(*word).compare_exchange_strong(*seen, desired);
    return Status();
  }
  if (!failed_.ok()) return failed_;
  uint64_t* const local = room(1);
  batch_->compare_swap(region_.address(offset), expected, desired, local);
  RDMACC_RETURN_IF_ERROR(flush());
  *seen = *local;
  return Status();
}

}  // namespace rdmacc
