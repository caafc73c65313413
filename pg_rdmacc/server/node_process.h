/* Processes of our programs: starting one, telling whether it still runs, ending it. Plain POSIX,
 * no PostgreSQL: what happens between fork and exec must not touch the server's state. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process for as long as the machine runs: a pid is used again, the pair is not. */
typedef struct ProcessIdentity {
  pid_t pid;            /* 0: none */
  uint64_t start_ticks; /* since boot, from /proc */
} ProcessIdentity;

/* Start ticks of a live process; 0 when there is none (a zombie is none). */
uint64_t process_start_ticks(pid_t pid);
bool process_alive(ProcessIdentity process);
/* Sends a signal unless the process has gone. */
void process_signal(ProcessIdentity process, int signal_number);

/* Starts `program` with `arguments` (argv, NULL-terminated) in a session of its own, with default
 * signal handling, nothing open but /dev/null, *ready_fd's pipe as standard output and this
 * process's standard error. False with errno when it cannot be started at all.
 *
 * The program begins when process_let_go() is called with *go_fd. If this process ends before, or
 * closes it, the new one ends, too: so that none runs that was not written down. */
bool process_start(const char* program, char* const* arguments, ProcessIdentity* process,
                   int* ready_fd, int* go_fd);
void process_let_go(int go_fd);

/* The same for a program that works for this process alone: it begins at once, its standard error
 * is *error_fd's pipe, and it is killed when this process ends. Both pipes are read without
 * blocking. */
bool process_start_attended(const char* program, char* const* arguments, ProcessIdentity* process,
                            int* output_fd, int* error_fd);

/* Reads what came from a ready_fd without blocking: true once a line "ready" is there. */
bool process_said_ready(int ready_fd);

/* Reaps a child that has ended: true and its wait status. Never blocks. */
bool process_reap(pid_t child, int* wait_status);

#ifdef __cplusplus
}
#endif
