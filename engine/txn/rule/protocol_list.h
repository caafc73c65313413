#pragma once

// Every protocol, in the order in which they are told of: a new one is registered here alone
// (docs/writing_a_protocol.md). Of each: its name in the code (Protocol::kOcc, with the rules
// kOccRules), its name on command lines and in SQL, and its number. Numbers stand in gate lines, in
// the log and on disk: a new protocol gets the next one, and none is given twice.

// clang-format off
#define RDMACC_PROTOCOLS(each)    \
  each(Nowait, "nowait", 0)       \
  each(Waitdie, "waitdie", 1)     \
  each(Woundwait, "woundwait", 6) \
  each(Occ, "occ", 2)             \
  each(Drtm, "drtm", 10)          \
  each(Mvcc, "mvcc", 3)           \
  each(Sundial, "sundial", 4)     \
  each(Tictoc, "tictoc", 7)       \
  each(Maat, "maat", 11)          \
  each(Timestamp, "timestamp", 8) \
  each(Cicada, "cicada", 9)       \
  each(Calvin, "calvin", 5)
// clang-format on
