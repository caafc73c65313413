#pragma once
#include "engine/log/log_record.h"
#include "engine/log/resolve.h"
#include "engine/txn/engine_context.h"

// The Commit stage's effects: what a logged transaction does to the headers that it holds locked.
// The same for every protocol that keeps one version in place (NOWAIT, OCC).

namespace rdmacc {

// Installs the record's writes and unlocks their headers: for a tuple WRITE wts | WRITE length
// and flags | WRITE record | WRITE lock = 0; for a gap header, after all tuples, WRITE wts |
// WRITE entries | WRITE lock = 0. With `guarded` only headers that still hold the record's
// lock_ctts are touched, so that doing it again (after a node's restart, or for a coordinator
// that died) does nothing twice.
Status install(Worker& worker, const LogRecord& record, bool guarded, VerbCounters& counters);

// For resolution: guarded install of a dead coordinator's record.
InstallCommitted make_installer(Worker& worker);

}  // namespace rdmacc
