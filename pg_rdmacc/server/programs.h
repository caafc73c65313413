/* Where our programs are, and what tells them which cluster this server's is. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* rdmacc_node or rdmacc_bench: beside the one that rdmacc.node_program names, or else beside the
 * server's, or in its library folder. `path` has MAXPGPATH bytes. False if it is nowhere. */
bool rdmacc_find_program(const char* name, char* path);
}
