#pragma once
#include <span>
#include <vector>

#include "engine/txn/transaction/history.h"

namespace rdmacc {

// Which transactions count as committed: the committed ones, and those of unknown outcome whose
// effects a transaction that counts depends on (checker.h). result[t] belongs to history[t].
std::vector<bool> transactions_that_count(std::span<const HistoryTransaction> history,
                                          bool preloaded);

}  // namespace rdmacc
