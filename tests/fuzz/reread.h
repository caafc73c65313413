#pragma once
#include "engine/storage/wire/messages.h"
#include "rdma/base/check.h"

namespace rdmacc {

// What parsed is written again; that must parse, and give the same bytes once more. (The first
// bytes may differ: a reader takes any non-zero byte for true, say.)
//   read:  (MessageReader&, T&) -> bool
//   write: (MessageWriter&, const T&)
template <typename T, typename Read, typename Write>
void check_reread(std::span<const std::byte> bytes, Read read, Write write) {
  T first{};
  MessageReader in(bytes);
  if (!read(in, first)) return;
  std::vector<std::byte> once;
  MessageWriter out_once(once);
  write(out_once, first);
  T second{};
  MessageReader again(once);
  CHECK(read(again, second));
  std::vector<std::byte> twice;
  MessageWriter out_twice(twice);
  write(out_twice, second);
  CHECK(once == twice);
}

}  // namespace rdmacc
