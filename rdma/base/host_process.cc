#include "rdma/base/host_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rdmacc {
namespace {

struct ProcessStat {
  char state = 0;
  uint64_t threads = 0;
  uint64_t start_time = 0;  // clock ticks since boot
};

// Fields 3, 20 and 22 of /proc/PID/stat. The second field is the program's name in parentheses and
// may hold anything, parentheses included: the last one ends it.
bool read_process_stat(uint32_t pid, ProcessStat* stat) {
  char path[32];
  std::snprintf(path, sizeof(path), "/proc/%u/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[1024];
  const ssize_t length = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ' || at[2] == '\0') return false;
  at += 2;
  stat->state = *at;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return false;
    ++at;
    if (field == 19) stat->threads = std::strtoull(at, nullptr, 10);
  }
  stat->start_time = std::strtoull(at, nullptr, 10);
  return true;
}

}  // namespace

HostProcess HostProcess::self() {
  const auto pid = static_cast<uint32_t>(getpid());
  ProcessStat stat;
  // Without /proc, processes are told apart by their pid alone.
  if (!read_process_stat(pid, &stat)) return HostProcess{pid, 0};
  return HostProcess{pid, static_cast<uint16_t>(stat.start_time)};
}

bool HostProcess::alive() const {
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  ProcessStat stat;
  if (!read_process_stat(pid, &stat)) {
    return kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
  }
  // A killed process is a zombie until its parent has waited for it; its main thread may be one
  // while others have not ended yet (F6: these may still carry out verbs).
  if (stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1)) return false;
  return static_cast<uint16_t>(stat.start_time) == start_time;
}

}  // namespace rdmacc
