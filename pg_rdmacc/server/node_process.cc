#include "pg_rdmacc/server/node_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/* Only async-signal-safe calls: the parent may have had anything locked. Ends in exec or _exit. */
[[noreturn]] void become(const char* program, char* const* arguments, int stdout_fd, int go_fd,
                         int stderr_fd) {
  setsid(); /* the postmaster signals whole process groups: a node must not be in one of its */
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
    signal(signal_number, SIG_DFL);
  }
  /* Standard output is not read after "ready"; the node must not die of that. */
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null_fd = open("/dev/null", O_RDONLY);
  if (null_fd < 0 || dup2(stdout_fd, STDOUT_FILENO) < 0) _exit(126);
  if (go_fd >= 0 && dup2(go_fd, STDIN_FILENO) < 0) _exit(126);
  if (stderr_fd >= 0 && dup2(stderr_fd, STDERR_FILENO) < 0) _exit(126);
  /* The server's files, sockets and the pipe by which it knows that the postmaster lives; and the
   * other ends of this process's pipes, or it would wait for itself. */
  if (null_fd > STDERR_FILENO + 1) close_range(STDERR_FILENO + 1, null_fd - 1, 0);
  close_range(null_fd + 1, ~0U, 0);
  char go = 0;
  ssize_t got = go_fd < 0 ? 1 : 0;
  while (got != 1) {
    got = read(STDIN_FILENO, &go, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) _exit(126);
  }
  if (dup2(null_fd, STDIN_FILENO) < 0) _exit(126);
  close(null_fd);
  execv(program, arguments);
  _exit(127);
}

/* By the kernel, when the parent has ended; it may have done so before this was asked for. */
void end_with(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(126);
}

void close_both(const int* ends) {
  const int saved_errno = errno;
  close(ends[0]);
  close(ends[1]);
  errno = saved_errno;
}

/* `second_fd` is this process's end of another pipe: of an attended program it is the standard
 * error's, and else the one on which it waits to be let go. */
bool start(const char* program, char* const* arguments, bool attended, ProcessIdentity* process,
           int* output_fd, int* second_fd) {
  int output[2];
  int second[2];
  if (pipe2(output, O_CLOEXEC) != 0) return false;
  if (pipe2(second, O_CLOEXEC) != 0) {
    close_both(output);
    return false;
  }
  const int ours = attended ? 0 : 1;
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  /* No handler of this process may run in the child. */
  const pid_t parent = getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  if (child == 0) {
    if (attended) end_with(parent);
    become(program, arguments, output[1], attended ? -1 : second[0], attended ? second[1] : -1);
  }
  const int saved_errno = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) {
    close_both(output);
    close_both(second);
    errno = saved_errno;
    return false;
  }
  close(output[1]);
  close(second[1 - ours]);
  process->pid = child;
  process->start_ticks = process_start_ticks(child);
  *output_fd = output[0];
  *second_fd = second[ours];
  return true;
}

}  // namespace

uint64_t process_start_ticks(pid_t pid) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t length = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = '\0';
  /* "pid (name) S ppid …": the name may hold anything, the last parenthesis ends it. */
  const char* field = strrchr(text, ')');
  if (field == nullptr || field[1] != ' ' || field[2] == 'Z' || field[2] == 'X') return 0;
  field += 2;
  for (int number = 3; number < 22; ++number) {
    field = strchr(field, ' ');
    if (field == nullptr) return 0;
    ++field;
  }
  return strtoull(field, nullptr, 10);
}

bool process_alive(ProcessIdentity process) {
  return process.pid > 0 && process.start_ticks != 0 &&
         process_start_ticks(process.pid) == process.start_ticks;
}

void process_signal(ProcessIdentity process, int signal_number) {
  if (process_alive(process)) kill(process.pid, signal_number);
}

bool process_start(const char* program, char* const* arguments, ProcessIdentity* process,
                   int* ready_fd, int* go_fd) {
  return start(program, arguments, false, process, ready_fd, go_fd);
}

bool process_start_attended(const char* program, char* const* arguments, ProcessIdentity* process,
                            int* output_fd, int* error_fd) {
  if (!start(program, arguments, true, process, output_fd, error_fd)) return false;
  fcntl(*error_fd, F_SETFL, O_NONBLOCK);
  return true;
}

void process_let_go(int go_fd) {
  /* One that has been killed meanwhile reads nothing: SIGPIPE is ignored in server processes. */
  const char go = 1;
  ssize_t written = 0;
  do {
    written = write(go_fd, &go, 1);
  } while (written < 0 && errno == EINTR);
  close(go_fd);
}

bool process_said_ready(int ready_fd) {
  char text[512];
  const ssize_t length = read(ready_fd, text, sizeof(text) - 1);
  if (length <= 0) return false;
  text[length] = '\0';
  return strstr(text, "ready") != nullptr;
}

bool process_reap(pid_t child, int* wait_status) {
  pid_t ended = 0;
  do {
    ended = waitpid(child, wait_status, WNOHANG);
  } while (ended < 0 && errno == EINTR);
  return ended == child;
}
