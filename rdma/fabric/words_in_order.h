#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define RDMACC_WORD_PAIRS 1
#endif

namespace rdmacc {

// Copies between memory that others change meanwhile and memory of one's own: word by word, in
// order, no word torn. Where the processor has AVX, its makers promise that aligned 16 bytes move
// as one, so that two words at a time keep the order as well; ThreadSanitizer is not shown that,
// since it takes them for plain accesses.
class WordsInOrder {
 public:
  [[gnu::always_inline]] void load_ascending(const uint64_t* remote, uint64_t* local,
                                             size_t words) const {
    size_t i = 0;
#ifdef RDMACC_WORD_PAIRS
    if (pairs_ && words >= 2) {
      if (!aligned(remote)) i = load(remote, local, 0);
      for (; i + kLineWords <= words; i += kLineWords) {
        load_pair(remote + i, local + i);
        load_pair(remote + i + 2, local + i + 2);
        load_pair(remote + i + 4, local + i + 4);
        load_pair(remote + i + 6, local + i + 6);
      }
      for (; i + 2 <= words; i += 2) load_pair(remote + i, local + i);
    }
#endif
    while (i < words) i = load(remote, local, i);
  }

  void load_descending(const uint64_t* remote, uint64_t* local, size_t words) const {
    size_t left = words;
#ifdef RDMACC_WORD_PAIRS
    if (pairs_ && words >= 2) {
      if (!aligned(remote + left)) load(remote, local, --left);
      for (; left >= 2; left -= 2) load_pair(remote + left - 2, local + left - 2);
    }
#endif
    while (left > 0) load(remote, local, --left);
  }

  // A cache line, which begins at `remote`.
  void load_line_ascending(const uint64_t* remote, uint64_t* local) const {
#ifdef RDMACC_WORD_PAIRS
    if (pairs_) [[likely]] {
      load_pair(remote, local);
      load_pair(remote + 2, local + 2);
      load_pair(remote + 4, local + 4);
      load_pair(remote + 6, local + 6);
      return;
    }
#endif
    load_ascending(remote, local, kLineWords);
  }
  void load_line_descending(const uint64_t* remote, uint64_t* local) const {
#ifdef RDMACC_WORD_PAIRS
    if (pairs_) [[likely]] {
      load_pair(remote + 6, local + 6);
      load_pair(remote + 4, local + 4);
      load_pair(remote + 2, local + 2);
      load_pair(remote, local);
      return;
    }
#endif
    load_descending(remote, local, kLineWords);
  }

  [[gnu::always_inline]] void store_ascending(uint64_t* remote, const uint64_t* local,
                                              size_t words) const {
    size_t i = 0;
#ifdef RDMACC_WORD_PAIRS
    if (pairs_ && words >= 2) {
      if (!aligned(remote)) i = store(remote, local, 0);
      for (; i + kLineWords <= words; i += kLineWords) {
        store_pair(remote + i, local + i);
        store_pair(remote + i + 2, local + i + 2);
        store_pair(remote + i + 4, local + i + 4);
        store_pair(remote + i + 6, local + i + 6);
      }
      for (; i + 2 <= words; i += 2) store_pair(remote + i, local + i);
    }
#endif
    while (i < words) i = store(remote, local, i);
  }

 private:
  static constexpr size_t kLineWords = 8;

  // The next one's number.
  static size_t load(const uint64_t* remote, uint64_t* local, size_t i) {
    local[i] = __atomic_load_n(remote + i, __ATOMIC_ACQUIRE);
    return i + 1;
  }
  static size_t store(uint64_t* remote, const uint64_t* local, size_t i) {
    uint64_t word;  // bytes of a message may lie anywhere
    std::memcpy(&word, local + i, sizeof(word));
    __atomic_store_n(remote + i, word, __ATOMIC_RELEASE);
    return i + 1;
  }

#ifdef RDMACC_WORD_PAIRS
  static bool aligned(const uint64_t* words) {
    return reinterpret_cast<uintptr_t>(words) % sizeof(__m128i) == 0;
  }
  // Written in assembly, or the compiler may split, repeat or move them.
  static void load_pair(const uint64_t* remote, uint64_t* local) {
    __m128i pair;
    asm volatile("movdqa %1, %0"
                 : "=x"(pair)
                 : "m"(*reinterpret_cast<const __m128i*>(remote))
                 : "memory");
    _mm_storeu_si128(reinterpret_cast<__m128i*>(local), pair);
  }
  static void store_pair(uint64_t* remote, const uint64_t* local) {
    const __m128i pair = _mm_loadu_si128(reinterpret_cast<const __m128i*>(local));
    asm volatile("movdqa %1, %0"
                 : "=m"(*reinterpret_cast<__m128i*>(remote))
                 : "x"(pair)
                 : "memory");
  }

  const bool pairs_ = __builtin_cpu_supports("avx") != 0;
#endif
};

}  // namespace rdmacc
