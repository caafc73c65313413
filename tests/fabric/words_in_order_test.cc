// Copies by words: every length, from an even and an odd word, and nothing beside them.
#include "rdma/fabric/words_in_order.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace rdmacc {
namespace {

constexpr size_t kWords = 24;
using Words = std::array<uint64_t, kWords>;

Words numbered() {
  Words words;
  for (size_t i = 0; i < kWords; i++) words[i] = 100 + i;
  return words;
}

void check_copied(const Words& from, size_t first_from, const Words& to, size_t first_to,
                  size_t count) {
  for (size_t i = 0; i < kWords; i++) {
    const bool copied = i >= first_to && i < first_to + count;
    EXPECT_EQ(copied ? from[first_from + i - first_to] : 0, to[i]) << i << " of " << count;
  }
}

TEST(WordsInOrderTest, CopiesAllAndNothingElse) {
  const WordsInOrder words;
  alignas(64) const Words from = numbered();
  for (size_t remote = 0; remote < 2; remote++) {
    for (size_t count = 0; count + 4 <= kWords; count++) {
      alignas(64) Words up{}, down{}, stored{};
      words.load_ascending(&from[remote], &up[1], count);
      words.load_descending(&from[remote], &down[1], count);
      words.store_ascending(&stored[remote], &from[1], count);
      check_copied(from, remote, up, 1, count);
      check_copied(from, remote, down, 1, count);
      check_copied(from, 1, stored, remote, count);
    }
  }
}

// A writer raises all words in ascending order, again and again; a look in descending order finds
// nothing behind that is newer than what is in front of it.
TEST(WordsInOrderTest, KeepsTheOrderBesideAWriter) {
  const WordsInOrder words;
  alignas(64) Words shared{};
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; round++) {
      Words next;
      next.fill(round);
      words.store_ascending(shared.data(), next.data(), kWords);
    }
  });
  for (int look = 0; look < 20'000 && !HasFailure(); look++) {
    Words down;
    words.load_descending(shared.data(), down.data(), kWords);
    // What was read later, further in front, was written at least as late.
    for (size_t i = 1; i < kWords; i++) EXPECT_GE(down[i - 1], down[i]) << i;
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace rdmacc
