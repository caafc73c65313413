#pragma once
#include <span>

#include "engine/txn/rule/stage.h"

// What is asked of a protocol by its number. engine/txn/rule/protocol_list.h names them all.

namespace rdmacc {

struct ProtocolRules;

// The mode matters to NOWAIT, WAITDIE and WOUND_WAIT.
const ProtocolRules* rules_of(Protocol protocol, LockMode mode = LockMode::kExclusive);
// In the order in which they are told of.
std::span<const Protocol> available_protocols();
// Bits of Stage that the protocol has.
uint16_t stages_of(Protocol protocol);
// Whether every history of the protocol respects real time, too: one that ended before another
// began comes before it. Those that order transactions by timestamps or leases promise
// serializability alone: their transactions may read, and come, as of a time before they began.
bool strictly_serializable(Protocol protocol);
// Whether everything that a transaction does happens at its ctts; what it finds absent is so as of
// that time.
bool happens_at_ctts(Protocol protocol);
// Whether it happens at a logical time, which it finds at its commit: it may be before others that
// have ended earlier.
bool happens_at_logical_time(Protocol protocol);
// Whether it takes whole transactions as procedures (Session::execute_procedure).
bool executes_procedures(Protocol protocol);
// Whether reads are locked until the end (two-phase locking).
bool locks_what_it_reads(Protocol protocol);
// Whether others may read for its transactions (Session::host).
bool may_have_guests(Protocol protocol);
// "nowait, occ"
std::string available_protocol_names();

}  // namespace rdmacc
