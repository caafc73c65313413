#pragma once
#include <algorithm>
#include <cstdint>

namespace rdmacc {

// How an attempt of a transaction ended, as far as its next attempt is concerned.
struct AttemptEnd {
  bool lost = false;     // aborted by concurrency control; else committed, rolled back or in error
  uint64_t age = 0;      // that the next attempt may keep; 0: none
  uint64_t lost_to = 0;  // a transaction of the same coordinator; 0: none that is known
  bool scanned = false;  // it had scanned a table,
  bool missed = false;   // or relied on a key's absence
  bool exclusive = false;     // it was in exclusive gate mode
  bool found_locked = false;  // it lost since another transaction held what it wanted to lock
};

// What a session keeps of an attempt that lost, for the next one: its age (WAITDIE), which other
// transaction of its coordinator held what it wanted (admission.h has the use), and how often
// in a row it lost though it had scanned. A scan conflicts with every writer, so that it may lose
// again and again; after kScanLossesMax attempts the next asks for exclusive gate mode, and so does
// one that has relied on absent keys (gap headers, of which a few guard many keys), after many
// more. Where that cannot be had, twice as many attempts are made before it asks again. After one
// that found locked what it wanted to write, the next does not read past such locks.
//
// A session is not told that a transaction is another attempt of the one before. It is taken for
// one when it begins with the same access; any other transaction is new: it has no age yet, and
// nothing has been lost. One session's coroutine.
class Restart {
 public:
  static constexpr uint32_t kScanLossesMax = 4;
  static constexpr uint32_t kMissLossesMax = 64;

  // A transaction makes its first access, named by a number that is not 0.
  void begin(uint64_t first_access) {
    if (first_access != first_access_) *this = Restart{};
    first_access_ = first_access;
  }
  uint64_t age() const { return age_; }
  uint64_t lost_to() const { return lost_to_; }
  bool wants_exclusive() const { return weight_ >= ask_at_; }
  bool found_locked() const { return found_locked_; }

  // It has ended. After anything but a conflict the next transaction is a new one.
  void end(const AttemptEnd& attempt) {
    if (!attempt.lost) {
      *this = Restart{};
      return;
    }
    const bool asked = wants_exclusive();
    age_ = attempt.age;
    lost_to_ = attempt.lost_to;
    found_locked_ = attempt.found_locked;
    if (attempt.scanned) {
      weight_ += kMissLossesMax / kScanLossesMax;
    } else if (attempt.missed) {
      ++weight_;
    }
    if (asked && !attempt.exclusive) ask_at_ = std::min(2 * ask_at_, kAskAtMax);
  }

 private:
  static constexpr uint64_t kAskAtMax = uint64_t{1} << 40;

  uint64_t first_access_ = 0;
  uint64_t age_ = 0;
  uint64_t lost_to_ = 0;
  bool found_locked_ = false;
  uint64_t weight_ = 0;  // a lost scan counts as so many lost misses
  uint64_t ask_at_ = kMissLossesMax;
};

}  // namespace rdmacc
