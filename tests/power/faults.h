#pragma once
#include <stdbool.h>
#include <stdint.h>

// Operations that fail when a test says so, in JOURNAL/faults: one plan at a time, shared by all
// processes. power.py writes it.

enum FaultyOperation { kFaultWrite = 1, kFaultExtend = 2, kFaultFsync = 4, kFaultCreate = 8 };

struct FaultPlan {
  uint32_t armed;
  int32_t error;        // errno
  uint32_t operations;  // bits
  uint32_t unused;
  int64_t skip;   // so many go well first
  int64_t times;  // then so many fail
  uint64_t struck;
  char pattern[128];  // fnmatch, of the path in the tree
};

// Does the operation on the file fail now? Then errno says how.
bool fault_strikes(uint32_t operation, const char* absolute);
