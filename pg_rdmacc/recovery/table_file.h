/* One table's rows on disk: written once, never changed. Blocks of rows, each compressed (LZ4) and
 * with a checksum of its own; the last one, without rows, says how many there are. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

typedef struct TableFile TableFile;

typedef struct TableFileSize {
  uint64 rows;
  uint64 bytes; /* on disk */
} TableFileSize;

/* Everything here raises an ERROR that names the file when it cannot be read or written, and
 * XX001 when what it holds is damaged, 55000 when another version of rdmacc has written it. Memory
 * is of the caller's context. */
TableFile* table_file_create(const char* path, uint32 table);
void table_file_add(TableFile* file, BridgeBytes key, BridgeBytes row);
/* It is whole, and on disk. */
TableFileSize table_file_finish(TableFile* file);

TableFile* table_file_open(const char* path, uint32 table);
/* The next row; false after the last. Views that live until the next call. */
bool table_file_next(TableFile* file, BridgeWrite* row);
void table_file_close(TableFile* file);
}
