#pragma once
#include <cstdint>

// Plain data, which the PostgreSQL side of the extension sees, too: no base.h here.

namespace rdmacc {

// What became of an operation: the code of a Status (status.h).
enum class Code : uint8_t {
  kOk,
  kAborted,       // conflict: retry the transaction; detail() is an AbortReason
  kCancelled,     // the user cancelled the wait
  kTimeout,       // a bounded wait ended (gate_timeout)
  kUnavailable,   // a node died or was restarted; the outcome of the step is unknown
  kNoSpace,       // node memory, log or a pool is used up
  kWriteSetFull,  // what was written before stays: behind a savepoint the transaction may go on
  kTooLarge,      // row or key longer than the limit
  kDuplicateKey,
  kNotFound,
  kInvalidArgument,
  kNoWorkerSlot,  // every worker slot is taken
  kCorrupt,       // remote or stored bytes do not parse
  kSystem,        // an operating system call failed; message() has its name and errno text
};

}  // namespace rdmacc
