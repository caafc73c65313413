#pragma once
#include "engine/txn/transaction/history.h"
#include "engine/txn/transaction/ordered_request.h"

namespace rdmacc {

// What an executed procedure did, as the history tells it.
std::vector<HistoryEvent> events_of_procedure(const OrderedRequest& request,
                                              const OrderedOutcome& outcome);

}  // namespace rdmacc
