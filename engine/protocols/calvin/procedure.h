#pragma once
#include <functional>
#include <map>
#include <string_view>

#include "engine/txn/ordered_request.h"

namespace rdmacc {

// What a deterministic procedure decides.
struct ProcedureResult {
  bool rollback = false;
  std::vector<OrderedWrite> writes;  // of keys that the request declared, each at most once
  std::string output;                // to the caller
};

// Given the same inputs and rows it gives the same result, on every node and in every replay: no
// clock, no chance, no state of its own. `reads` and `rows` are the request's reads, in their
// order; a row that does not exist has `found` false.
using Procedure = std::function<void(std::string_view inputs, std::span<const OrderedRead> reads,
                                     std::span<const OrderedRow> rows, ProcedureResult& result)>;

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
