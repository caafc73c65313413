/* The access method itself. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/tableam.h"

extern const TableAmRoutine rdmacc_routine;
}
