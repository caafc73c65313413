#pragma once
#include <functional>
#include <map>
#include <string_view>

#include "engine/txn/transaction/ordered_request.h"
#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// What a deterministic procedure is given. `rows` are the request's reads, in their order; a row
// that does not exist has `found` false.
struct ProcedureCall {
  std::string_view inputs;
  std::span<const OrderedRead> reads;
  std::span<const OrderedRow> rows;
  Scheduler& scheduler;  // of the thread that executes it: time may be spent, not looked at
};

// What it decides.
struct ProcedureResult {
  // Not ok: the request ends without effect, and its caller is told. kAborted: the keys that it
  // declared depend on rows that have changed since.
  Status status;
  bool rollback = false;
  // Each key at most once, and only those that the request declared to write, unless it has
  // derived inserts.
  std::vector<OrderedWrite> writes;
  std::string output;  // to the caller
};

// Given the same inputs and rows it gives the same result, on every node and in every replay: no
// clock, no chance, no state of its own.
using Procedure = std::function<void(const ProcedureCall& call, ProcedureResult& result)>;

// The procedures of a process, by their numbers (from 1): the same on all nodes of a cluster.
// Filled before the nodes start, constant afterwards.
class ProcedureRegistry {
 public:
  void add(uint32_t number, Procedure procedure) {
    CHECK(number != 0);
    CHECK(procedures_.emplace(number, std::move(procedure)).second);
  }
  const Procedure* find(uint32_t number) const {
    const auto found = procedures_.find(number);
    return found == procedures_.end() ? nullptr : &found->second;
  }

 private:
  std::map<uint32_t, Procedure> procedures_;
};

}  // namespace rdmacc
