#pragma once
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/storage/layout/key_hash.h"
#include "engine/txn/rule/outcome.h"
#include "engine/txn/rule/stage.h"

// The history of a run: one JSON object per line and transaction, in the order in which they
// ended. docs/HISTORY.md documents the format; rdmacc_check reads it.
//
//   {"txn":ctts,"worker":w,"protocol":"occ","stages":63,"outcome":"committed"|"aborted"|"unknown",
//    "reason":"lock_held","start":us,"end":us,"ops":[op, …]}
//   op: ["r",table,"key",version]            read the version with that stamp
//       ["m",table,"key",gap stamp]          missed: no such key, as of that stamp of its gap
//       ["s",table,[[node,bits,depth,gap stamp], …]]  scanned these groups; what it found are
//                                            "r" operations of their own
//       ["w",table,"key",version]            made that version
//       ["i",table,"key",version]            inserted
//       ["d",table,"key",version]            deleted, at that stamp
// Keys are printed as text when printable, else as \xHEX.

namespace rdmacc {

enum class HistoryOp : char {
  kRead = 'r',
  kMiss = 'm',
  kScan = 's',
  kWrite = 'w',
  kInsert = 'i',
  kDelete = 'd'
};

struct ScannedGroup {
  NodeId node;
  uint64_t bits;
  uint32_t depth;
  uint64_t stamp;
};

struct HistoryEvent {
  HistoryOp op;
  TableId table = kNoTable;
  std::string key;
  uint64_t version = 0;
  std::vector<ScannedGroup> groups;  // kScan
};

enum class HistoryOutcome : uint8_t { kCommitted, kAborted, kUnknown };

struct HistoryTransaction {
  uint64_t ctts = 0;
  WorkerId worker = 0;
  Protocol protocol = Protocol::kOcc;
  uint16_t stages = 0;
  HistoryOutcome outcome = HistoryOutcome::kAborted;
  AbortReason reason = AbortReason::kNone;
  uint64_t start_us = 0, end_us = 0;
  std::vector<HistoryEvent> events;
};

// Where coordinators report. Thread-safe.
class HistoryWriter {
 public:
  virtual ~HistoryWriter() = default;
  virtual void add(HistoryTransaction transaction) = 0;
};

}  // namespace rdmacc
