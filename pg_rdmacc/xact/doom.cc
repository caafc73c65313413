#include "pg_rdmacc/xact/doom.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"

namespace {

bool doomed;
BridgeError doom; /* why */
int doom_protocol;

}  // namespace

void rdmacc_doom(const BridgeError* error) {
  if (doomed) return;
  CHECK(error->code != rdmacc::Code::kOk);
  doomed = true;
  doom = *error;
  doom_protocol = Max(bridge_txn_protocol(), 0);
  /* What was raised first said how it ended; a repetition only says that it did. */
  doom.outcome_unknown = false;
}

bool rdmacc_is_doomed(void) { return doomed; }

bool rdmacc_doomed_by_conflict(void) {
  return doomed && (doom.code == rdmacc::Code::kAborted || doom.code == rdmacc::Code::kUnavailable);
}

bool rdmacc_doomed_by_cancel(void) { return doomed && doom.code == rdmacc::Code::kCancelled; }

void rdmacc_raise_cancel_as_conflict(void) {
  CHECK(rdmacc_doomed_by_cancel());
  rdmacc_note_conflict(doom_protocol);
  rdmacc_raise(&doom, doom_protocol, "could not go on", nullptr);
}

void rdmacc_check_doom(void) {
  if (doomed) rdmacc_raise(&doom, doom_protocol, "could not commit", nullptr);
}

void rdmacc_refuse_if_doomed(void) {
  if (!doomed) return;
  /* What is not a part of a statement that runs has no handlers around it. */
  if (rdmacc_running_query() == nullptr && !rdmacc_in_utility()) rdmacc_check_doom();
  ereport(ERROR, (errcode(ERRCODE_ASSERT_FAILURE),
                  errmsg("the transaction cannot go on after a conflict or a failure"),
                  errhint("The transaction might succeed if retried.")));
}

void rdmacc_forget_doom(void) { doomed = false; }
