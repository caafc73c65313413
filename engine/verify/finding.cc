#include "engine/verify/finding.h"

#include <algorithm>

namespace rdmacc {

namespace {
constexpr uint64_t kFirstPauseUs = 2'000;
constexpr uint32_t kDoublingsMax = 16;
}  // namespace

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

std::string Finding::to_string() const {
  std::string text = kind + ": table " + std::to_string(table) + ", node " + std::to_string(node);
  if (offset != 0) text += ", at " + std::to_string(offset);
  if (!key.empty()) text += ", key " + hex(key);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

uint64_t VerifyOptions::pause_us(uint32_t pass) const {
  return std::min(kFirstPauseUs << std::min(pass, kDoublingsMax), pause_us_max);
}

}  // namespace rdmacc
