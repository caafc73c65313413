#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.h"

// The small programs whose every order of events is tried: two or three transactions of a few
// operations on the rows x and y and the absent row z of one table.

namespace rdmacc {

enum class ExploreOp : uint8_t {
  kGetX,
  kGetY,
  kGetZ,  // absent, unless another transaction has inserted it
  kPutX,
  kPutY,
  kInsertZ,
  kRemoveX,
  kScan,
  kCount
};

struct ExploreTransaction {
  std::vector<ExploreOp> operations;
  bool user_aborts = false;  // instead of committing
};

// As text: transactions separated by '|', operations of two letters by ',', '!' aborts:
// "gx,py|iz,sc!".
struct ExploreProgram {
  std::vector<ExploreTransaction> transactions;

  std::string to_string() const;
  static std::optional<ExploreProgram> parse(std::string_view text);
  // Does any transaction make the owner's CPU touch records (allocate or free slots)?
  bool allocates() const;
};

// Everything else that decides what is explored.
struct ExploreSetup {
  Protocol protocol = Protocol::kOcc;
  StagePlan plan;
  LockMode lock_mode = LockMode::kExclusive;
  uint32_t nodes = 1;
  bool words = false;  // verbs tear word by word, as a CPU carries them out, not line by line
  bool warm = false;   // each transaction's worker knows where the rows are
  bool younger_first = false;  // the first transaction has the largest ctts
  bool wide_rows = false;      // rows of two cache lines

  // "occ stages=63 exclusive nodes=1 lines cold older_first narrow"
  std::string to_string() const;
  static std::optional<ExploreSetup> parse(std::string_view text);
};

// All programs of two transactions of two operations, the same up to exchanging the transactions.
std::vector<ExploreProgram> all_programs_of_two();

}  // namespace rdmacc
