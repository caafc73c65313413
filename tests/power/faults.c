#include "tests/power/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/power/journal.h"

static struct FaultPlan* plan;

// Runs after the journal has read the environment, or at the first question.
static struct FaultPlan* find_plan(void) {
  static bool looked;
  if (looked) return plan;
  looked = true;
  char path[kPathBytesMax];
  snprintf(path, sizeof(path), "%s/faults", journal_folder());
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return NULL;
  void* mapped = mmap(NULL, sizeof(struct FaultPlan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) plan = mapped;
  journal_close(fd);
  return plan;
}

bool fault_strikes(uint32_t operation, const char* absolute) {
  struct FaultPlan* now = find_plan();
  if (now == NULL || !__atomic_load_n(&now->armed, __ATOMIC_ACQUIRE)) return false;
  if ((now->operations & operation) == 0) return false;
  if (fnmatch(now->pattern, journal_relative(absolute), 0) != 0) return false;
  if (__atomic_fetch_sub(&now->skip, 1, __ATOMIC_ACQ_REL) > 0) return false;
  if (__atomic_fetch_sub(&now->times, 1, __ATOMIC_ACQ_REL) <= 0) return false;
  __atomic_fetch_add(&now->struck, 1, __ATOMIC_ACQ_REL);
  errno = now->error;
  return true;
}
