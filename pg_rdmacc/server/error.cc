/* What went wrong in the engine, as SQL says it. */
#include "pg_rdmacc/server/error.h"

#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/remote_nodes.h"

namespace {

constexpr int kNoConflict = -1;
int conflict_protocol = kNoConflict; /* under which this transaction has raised a conflict */
bool memory_short = false;           /* its commit has found no memory on a node */

}  // namespace

void rdmacc_check_failed(const char* condition, const char* file, int line) {
  ereport(PANIC, (errcode(ERRCODE_INTERNAL_ERROR),
                  errmsg_internal("rdmacc: CHECK(%s) failed at %s:%d", condition, file, line)));
  pg_unreachable();
}

void rdmacc_note_conflict(int protocol) {
  CHECK(protocol >= 0); /* the transaction is in the engine */
  conflict_protocol = protocol;
}

int rdmacc_conflict_protocol(void) { return conflict_protocol; }

void rdmacc_note_memory_short(void) { memory_short = true; }

bool rdmacc_memory_was_short(void) { return memory_short; }

void rdmacc_forget_conflict(void) {
  conflict_protocol = kNoConflict;
  memory_short = false;
}

void rdmacc_check(const char* action, const char* relation) {
  if (bridge_error()->code == rdmacc::Code::kOk) return;
  const BridgeError error = *bridge_error();
  rdmacc_raise(&error, Max(bridge_txn_protocol(), 0), action, relation);
}

void rdmacc_raise(const BridgeError* error, int protocol, const char* action,
                  const char* relation) {
  CHECK(error->code != rdmacc::Code::kOk && action != nullptr);
  switch (error->code) {
    case rdmacc::Code::kAborted:
    case rdmacc::Code::kUnavailable:
      if (error->outcome_unknown) {
        ereport(ERROR, (errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
                        errmsg("the outcome of the transaction is unknown"),
                        errdetail_internal("%s", error->message),
                        errhint("Read the rows again before you repeat the transaction.")));
      }
      if (error->code == rdmacc::Code::kUnavailable && rdmacc_nodes_are_remote() &&
          !rdmacc_remote_nodes_serve()) {
        rdmacc_raise_nodes_away(nullptr); /* it is not started again at once */
      }
      rdmacc_note_conflict(protocol);
      ereport(ERROR,
              (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
               errmsg("could not serialize access due to a conflict with another transaction"),
               relation != nullptr
                   ? errdetail("Protocol %s, reason %s, table \"%s\".",
                               bridge_protocol_name(protocol), rdmacc_reason(error), relation)
                   : errdetail("Protocol %s, reason %s.", bridge_protocol_name(protocol),
                               rdmacc_reason(error)),
               errhint("The transaction might succeed if retried.")));
    case rdmacc::Code::kCancelled:
      /* Raised only when a doomed transaction goes on: the cancel itself had its own error. */
      ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                      errmsg("could not serialize access after a cancelled statement"),
                      errdetail("The engine's transaction ended with the statement."),
                      errhint("The transaction might succeed if retried.")));
    case rdmacc::Code::kTimeout:
      ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                      errmsg("canceling statement due to a timeout at the protocol gate"),
                      errdetail_internal("%s", error->message),
                      errhint("Transactions of another protocol are under way; see "
                              "rdmacc.gate_timeout and lock_timeout.")));
    case rdmacc::Code::kNoSpace:
    case rdmacc::Code::kWriteSetFull:
      ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("%s: out of space", action),
                      errdetail_internal("%s", error->message),
                      errhint("See rdmacc.node_memory and rdmacc.max_write_set.")));
    case rdmacc::Code::kTooLarge:
      ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("%s: too large", action),
                      errdetail_internal("%s", error->message)));
    case rdmacc::Code::kNoWorkerSlot:
      ereport(ERROR, (errcode(ERRCODE_TOO_MANY_CONNECTIONS),
                      errmsg("sorry, too many sessions use rdmacc tables already"),
                      errhint("See rdmacc.max_workers.")));
    case rdmacc::Code::kCorrupt:
      ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("%s: %s", action, error->message)));
    case rdmacc::Code::kNotFound:
      if (relation != nullptr && rdmacc_nodes_are_remote()) {
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("an rdmacc node does not have its share of table \"%s\"", relation),
                 errdetail_internal("%s: %s.", action, error->message),
                 errhint("If the node has lost its memory, TRUNCATE the table to use it again.")));
      }
      [[fallthrough]];
    default:
      ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("%s: %s", action, error->message),
                      relation != nullptr ? errcontext("table \"%s\"", relation) : 0));
  }
}

const char* rdmacc_reason(const BridgeError* error) {
  if (error->reason[0] != '\0') return error->reason;
  return error->code == rdmacc::Code::kUnavailable ? "node_unavailable" : "aborted";
}

bool rdmacc_error_is_fatal(rdmacc::Code code) {
  switch (code) {
    case rdmacc::Code::kAborted:
    case rdmacc::Code::kCancelled:
    case rdmacc::Code::kTimeout:
    case rdmacc::Code::kUnavailable:
    case rdmacc::Code::kNoSpace:
    case rdmacc::Code::kCorrupt:
    case rdmacc::Code::kSystem:
      return true;
    default:
      return false;
  }
}
