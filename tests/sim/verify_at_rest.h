#pragma once
#include "engine/workloads/workload.h"

namespace rdmacc {

// Verifies a workload's tables (engine/verify), and all units of the nodes, on a session without a
// transaction. kCorrupt: the first finding. `losses`: coordinators or nodes have died, and requests
// to free or allocate with them; so slots and blocks may be leaked, as engine/storage says.
Status verify_at_rest(Session& session, const Workload& workload, const TxnOptions& txn,
                      bool losses);

}  // namespace rdmacc
