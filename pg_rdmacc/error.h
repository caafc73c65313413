/* Errors of the engine as PostgreSQL errors. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

/* Raises `error`, which is not BRIDGE_OK. */
[[noreturn]] void rdmacc_raise(const BridgeError* error, int protocol, const char* action,
                               const char* relation);

const char* rdmacc_reason(const BridgeError* error);

/* True when the engine's transaction cannot go on after it. */
bool rdmacc_error_is_fatal(int code);
}
