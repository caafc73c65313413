#include "pg_rdmacc/server/programs.h"

#include "pg_rdmacc/server/guc.h"

extern "C" {
#include <unistd.h>

#include "miscadmin.h"
}

namespace {

/* `name` in the folder of another program. */
bool beside(const char* other, const char* name, char* path) {
  CHECK(other != nullptr && name != nullptr && path != nullptr);
  strlcpy(path, other, MAXPGPATH);
  char* slash = strrchr(path, '/');
  if (slash == nullptr) return false;
  strlcpy(slash + 1, name, static_cast<size_t>(MAXPGPATH - (slash + 1 - path)));
  return access(path, X_OK) == 0;
}

}  // namespace

bool rdmacc_find_program(const char* name, char* path) {
  CHECK(rdmacc_node_program != nullptr); /* the settings are defined */
  if (rdmacc_node_program[0] != '\0') {
    if (strcmp(name, "rdmacc_node") != 0) return beside(rdmacc_node_program, name, path);
    strlcpy(path, rdmacc_node_program, MAXPGPATH);
    return access(path, X_OK) == 0;
  }
  if (beside(my_exec_path, name, path)) return true;
  snprintf(path, MAXPGPATH, "%s/%s", pkglib_path, name);
  return access(path, X_OK) == 0;
}
