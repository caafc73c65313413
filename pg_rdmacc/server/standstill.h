/* Sessions of this server whose transactions wait for something that the engine knows nothing of.
 */
#pragma once
#include "pg_rdmacc/bridge/engine_bridge.h"

extern "C" {
#include "postgres.h"

/* What the session of a worker waits for right now; kNone, too, when it is no session of this
 * server, or does not wait. Raises nothing. */
rdmacc::Standstill rdmacc_standstill_of(uint16 worker);
}
