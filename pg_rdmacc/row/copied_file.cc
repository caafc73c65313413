#include "pg_rdmacc/row/copied_file.h"

#include <sys/stat.h>

extern "C" {
#include "catalog/namespace.h"
#include "nodes/primnodes.h"
}

namespace {

/* Of the COPY that has begun last; a hint, which may be wrong. */
struct CopiedFile {
  Oid relation;
  uint64 bytes;
};
CopiedFile copied;

/* Whether the user may read the file COPY itself finds out. */
uint64 bytes_of_file(const char* name) {
  struct stat found;
  if (stat(name, &found) != 0 || !S_ISREG(found.st_mode)) return 0;
  return static_cast<uint64>(found.st_size);
}

}  // namespace

void rdmacc_note_copy(const CopyStmt* statement) {
  copied = {};
  const bool all = statement->is_from && statement->whereClause == nullptr;
  if (!all || statement->relation == nullptr) return;
  if (statement->filename == nullptr || statement->is_program) return;
  copied.relation = RangeVarGetRelid(statement->relation, NoLock, true);
  copied.bytes = bytes_of_file(statement->filename);
}

/* A row is about as long in a file as in the table. */
uint64 rdmacc_rows_of_copy(Oid relation, uint64 rows, uint64 bytes) {
  if (copied.relation != relation || rows == 0 || bytes < rows) return 0;
  return copied.bytes / (bytes / rows);
}
