/* Errors of the engine as PostgreSQL errors. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Raises bridge_error() with its SQLSTATE when it is not kOk. `action` names what failed
 * ("could not create table"); relation may be NULL. */
void rdmacc_check(const char* action, const char* relation);

/* Raises `error`, which is not kOk. */
[[noreturn]] void rdmacc_raise(const BridgeError* error, int protocol, const char* action,
                               const char* relation);

const char* rdmacc_reason(const BridgeError* error);

/* True when the engine's transaction cannot go on after it. */
bool rdmacc_error_is_fatal(rdmacc::Code code);

/* A conflict is about to be raised as an error. */
void rdmacc_note_conflict(int protocol);

/* The protocol of the transaction's last conflict; -1 when it has met none. */
int rdmacc_conflict_protocol(void);

/* The same of a commit for which a node has no memory. */
void rdmacc_note_memory_short(void);
bool rdmacc_memory_was_short(void);

void rdmacc_forget_conflict(void); /* at the transaction's end */
}
