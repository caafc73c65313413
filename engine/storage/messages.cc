#include "engine/storage/messages.h"

#include <bit>
#include <cstring>

namespace rdmacc {

static_assert(std::endian::native == std::endian::little);

void MessageWriter::raw(const void* from, size_t n) {
  if (n == 0) return;
  const auto* bytes = static_cast<const std::byte*>(from);
  out_.insert(out_.end(), bytes, bytes + n);
}

template <typename T>
T MessageReader::number() {
  T value = 0;
  const std::span<const std::byte> bytes = raw(sizeof(T));
  if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

uint8_t MessageReader::u8() { return number<uint8_t>(); }
uint16_t MessageReader::u16() { return number<uint16_t>(); }
uint32_t MessageReader::u32() { return number<uint32_t>(); }
uint64_t MessageReader::u64() { return number<uint64_t>(); }

std::string_view MessageReader::bytes() {
  const std::span<const std::byte> view = raw(u32());
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

std::span<const std::byte> MessageReader::raw(size_t n) {
  if (!ok_ || n > in_.size() - at_) {
    ok_ = false;
    return {};
  }
  const std::span<const std::byte> view = in_.subspan(at_, n);
  at_ += n;
  return view;
}

}  // namespace rdmacc
