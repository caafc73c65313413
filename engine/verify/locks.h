#pragma once
#include <map>
#include <optional>

#include "engine/verify/verify.h"

namespace rdmacc {

// Locks without an owner: in lock words, SUNDIAL's words and waiter words of headers that hold a
// row or guard a group. (A lock of a slot without a row is a leaked slot's.) A lock has an owner
//
//   while its worker is inside the protocol gate   the worker's line says so, or gives out stamps
//   while its transaction is in doubt              node 0 lists it
//   while its worker is dead and unresolved        node 0 counts it
//   while a thread of its node holds it            which the node itself judges (unit_audit.h)
//
// The headers are read between two reads of the lines of all workers: a worker that was outside at
// both, and gave out no stamp between, had no transaction then. What a worker that is never outside
// has locked is judged by epochs: two of them, and every transaction of the first pass has ended.
// Reader counts name no worker; they are judged while no transaction at all is inside.
class LockCheck {
 public:
  // `table`: kNoTable for those of all tables.
  LockCheck(Session& session, const VerifyOptions& options, TableId table)
      : session_(session), options_(options), table_(table) {}

  Status run(NodeId nodes, std::vector<Finding>& findings);

 private:
  enum class Word : uint8_t { kLock, kSundial, kWaiter };
  struct Held {
    LockedHeader header;
    Word word;
    uint64_t value;
    auto identity() const { return std::tuple(header.address.bits, word, value); }
  };
  struct Suspect {
    Held held;
    uint64_t epoch = 0, since_us = 0;  // of the first pass
    uint32_t quiet = 0;                // passes in which its worker had no transaction
  };
  using Suspects = std::map<std::tuple<uint64_t, Word, uint64_t>, Suspect>;
  struct Lines {
    GateLine gate{};
    std::vector<WorkerLine> workers;
  };
  enum class Owner : uint8_t { kSome, kQuiet, kUnknown };

  Status look(NodeId nodes, std::vector<Held>& held);
  Status headers_of(NodeId node, std::vector<Held>& held);
  static void words_of(const LockedHeader& header, std::vector<Held>& held);
  bool idle(WorkerId worker) const;
  bool all_idle() const;
  bool in_doubt(const Held& held, WorkerId worker) const;
  Owner owner_of(const Held& held) const;
  bool confirmed(Suspect& suspect) const;
  Finding finding_of(const Held& held) const;
  // Nothing: a reader count, which names no worker.
  static std::optional<WorkerId> worker_of(const Held& held);

  Session& session_;
  const VerifyOptions& options_;
  const TableId table_;
  Lines before_, after_;  // of the last pass
  InDoubtList doubts_;
};

}  // namespace rdmacc
