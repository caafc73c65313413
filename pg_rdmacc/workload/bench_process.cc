#include "pg_rdmacc/workload/bench_process.h"

#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/node_process.h"
#include "pg_rdmacc/server/programs.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/xact/own_tables.h"

extern "C" {
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

namespace {

constexpr const char* kProgram = "rdmacc_bench";
constexpr int kPollMs = 100; /* an interrupt is noticed by then */
constexpr int kEndMsMax = 1500;
constexpr int kReapMsMax = 400;
constexpr int kStepMs = 10;
constexpr int kExitUsage = 2;
constexpr int kWordsMax = 24;
/* Where and how the server looks for files that a crash has left, to remove them. */
constexpr const char* kConfigFolder = "base/" PG_TEMP_FILES_DIR;
constexpr const char* kConfigName = PG_TEMP_FILE_PREFIX "_rdmacc_bench";

/* The process under way. */
struct Child {
  ProcessIdentity process;
  int output_fd, error_fd;
  int wait_status;
  bool ended; /* and has been reaped */
  StringInfoData report;
  StringInfoData line;    /* of its standard error, as far as it has come */
  char complaint[1024];   /* the last line that was no progress */
  char config[MAXPGPATH]; /* a file that is its alone; empty: none */
  char* words[kWordsMax + 1];
  int word_count;
};

__attribute__((format(printf, 2, 3))) void add_word(Child* child, const char* format, ...) {
  CHECK(child->word_count < kWordsMax);
  StringInfoData word;
  initStringInfo(&word);
  for (;;) {
    va_list arguments;
    va_start(arguments, format);
    const int missing = appendStringInfoVA(&word, format, arguments);
    va_end(arguments);
    if (missing == 0) break;
    enlargeStringInfo(&word, missing);
  }
  child->words[child->word_count++] = word.data;
}

/* Of nodes that others run: what the cluster's settings say, as a file. A secret file without a
 * folder is in the server's, and would be looked for beside this one. */
void write_config(Child* child) {
  const BridgeFabric* fabric = rdmacc_fabric_description();
  const char* secret_folder = is_absolute_path(fabric->secret_file) ? "" : DataDir;
  if (MakePGDirectory(kConfigFolder) != 0 && errno != EEXIST) {
    ereport(ERROR, (errcode_for_file_access(),
                    errmsg("could not create directory \"%s\": %m", kConfigFolder)));
  }
  snprintf(child->config, sizeof(child->config), "%s/%s/%s.%d", DataDir, kConfigFolder, kConfigName,
           MyProcPid);
  FILE* file = AllocateFile(child->config, "w");
  if (file == nullptr) {
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", child->config)));
  }
  fprintf(file,
          "name = %s\nnodes = %s\nsecret_file = %s%s%s\nthreads_per_node = %d\n"
          "workers_max = %d\nmemory_mb = %d\n",
          fabric->cluster, fabric->node_list, secret_folder, secret_folder[0] == '\0' ? "" : "/",
          fabric->secret_file, fabric->threads_per_node, fabric->workers_max,
          rdmacc_node_memory_mb);
  if (FreeFile(file) == 0) return;
  ereport(ERROR,
          (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", child->config)));
}

void add_cluster(Child* child) {
  if (!rdmacc_nodes_are_remote() && !rdmacc_fabric_needs_files()) {
    add_word(child, "--cluster=%s", rdmacc_cluster_name());
    return;
  }
  if (rdmacc_nodes_are_remote()) write_config(child);
  add_word(child, "--fabric=%s", rdmacc_fabric);
  add_word(child, "--config=%s",
           rdmacc_nodes_are_remote() ? child->config : rdmacc_fabric_config());
  if (rdmacc_verbs_device[0] != '\0') add_word(child, "--verbs-device=%s", rdmacc_verbs_device);
}

/* Its tables are this server's, under a name of this run, so that the resolver finds what is left
 * of them; their numbers are no relation's. */
void add_owner(Child* child) {
  const auto run = static_cast<uint64>(GetCurrentTimestamp());
  const uint64 system_name = rdmacc_system_name(run << 16 ^ static_cast<uint64>(MyProcPid));
  CHECK(rdmacc_is_own_name(system_name));
  add_word(child, "--owner=%llu:%u", static_cast<unsigned long long>(system_name), MyDatabaseId);
}

void add_words(Child* child, const RdmaccBenchRun* run) {
  add_word(child, "%s", kProgram);
  add_word(child, "%s", run->workload);
  add_cluster(child);
  add_owner(child);
  if (run->preset != nullptr) add_word(child, "--preset=%s", run->preset);
  if (run->protocol != nullptr) add_word(child, "--protocol=%s", run->protocol);
  CHECK(run->stages == nullptr || !run->enumerate);
  if (run->stages != nullptr) add_word(child, "--stages=%s", run->stages);
  if (run->enumerate) add_word(child, "--enumerate");
  if (run->lock_mode != nullptr) add_word(child, "--lock-mode=%s", run->lock_mode);
  /* An option without a value would take the next one for it. */
  if (run->settings[0] != '\0') add_word(child, "--settings=%s", run->settings);
  add_word(child, "--time=%.3f", run->seconds);
  add_word(child, "--threads=%d", run->threads);
  add_word(child, "--coroutines=%d", run->coroutines);
  add_word(child, "--seed=%llu", static_cast<unsigned long long>(run->seed));
  add_word(child, "--spin-us=%d", rdmacc_spin_us);
  add_word(child, "--replicas=%d", rdmacc_replicas);
  add_word(child, "--format=json");
  add_word(child, "--progress=1");
}

/* Reads what there is. False once the other end is closed. */
bool read_some(int fd, StringInfo text) {
  enlargeStringInfo(text, 8192);
  const ssize_t length = read(fd, text->data + text->len, 8192);
  if (length < 0) return errno == EAGAIN || errno == EINTR;
  text->len += static_cast<int>(length);
  text->data[text->len] = '\0';
  return length > 0;
}

/* Whole lines of the program's standard error. */
void tell_lines(Child* child) {
  char* begin = child->line.data;
  char* end = nullptr;
  while ((end = strchr(begin, '\n')) != nullptr) {
    *end = '\0';
    const char* prefix = "rdmacc_bench: ";
    const char* said = strncmp(begin, prefix, strlen(prefix)) == 0 ? begin + strlen(prefix) : begin;
    if (said == begin) {
      ereport(NOTICE, (errmsg_internal("%s", said)));
    } else {
      if (strncmp(said, "--", 2) == 0) said += 2; /* options are arguments here */
      strlcpy(child->complaint, said, sizeof(child->complaint));
    }
    begin = end + 1;
  }
  const auto left = static_cast<int>(child->line.data + child->line.len - begin);
  memmove(child->line.data, begin, static_cast<size_t>(left) + 1);
  child->line.len = left;
}

void read_to_the_end(Child* child) {
  bool reports = true;
  bool speaks = true;
  while (reports || speaks) {
    pollfd both[] = {{.fd = reports ? child->output_fd : -1, .events = POLLIN, .revents = 0},
                     {.fd = speaks ? child->error_fd : -1, .events = POLLIN, .revents = 0}};
    pgstat_report_wait_start(PG_WAIT_EXTENSION);
    const int ready = poll(both, lengthof(both), kPollMs);
    pgstat_report_wait_end();
    CHECK_FOR_INTERRUPTS();
    if (ready <= 0) continue;
    if (both[0].revents != 0) reports = read_some(child->output_fd, &child->report);
    if (both[1].revents == 0) continue;
    speaks = read_some(child->error_fd, &child->line);
    tell_lines(child);
  }
}

bool reaped_within(Child* child, int ms_max) {
  for (int ms = 0; ms <= ms_max && !child->ended; ms += kStepMs) {
    child->ended = process_reap(child->process.pid, &child->wait_status);
    if (!child->ended) pg_usleep(kStepMs * 1000L);
  }
  return child->ended;
}

/* However the run has ended, also by FATAL. */
void clean_up(int /*code*/, Datum of_child) {
  auto* child = reinterpret_cast<Child*>(DatumGetPointer(of_child));
  if (child->process.pid > 0 && !child->ended) {
    process_signal(child->process, SIGINT);
    if (!reaped_within(child, kEndMsMax)) {
      process_signal(child->process, SIGKILL);
      reaped_within(child, kReapMsMax);
    }
  }
  if (child->process.pid > 0) {
    /* One that complains, and yet has done what it was asked for, has left tables. */
    const bool well = child->ended && child->wait_status == 0 && child->complaint[0] == '\0';
    if (!well) rdmacc_note_doubt();
    close(child->output_fd);
    close(child->error_fd);
  }
  if (child->config[0] != '\0') unlink(child->config);
}

[[noreturn]] void refuse(const Child* child) {
  const bool exited = WIFEXITED(child->wait_status);
  const int exit_code = exited ? WEXITSTATUS(child->wait_status) : 0;
  /* One that has reported has run to the end, and found then that not all is well. */
  const int sqlstate = exited && exit_code == kExitUsage ? ERRCODE_INVALID_PARAMETER_VALUE
                       : exited && child->report.len > 0 ? ERRCODE_DATA_CORRUPTED
                                                         : ERRCODE_SYSTEM_ERROR;
  if (child->complaint[0] != '\0') {
    ereport(ERROR, (errcode(sqlstate), errmsg_internal("%s", child->complaint)));
  }
  if (exited) {
    ereport(ERROR, (errcode(sqlstate), errmsg("%s ended with exit code %d", kProgram, exit_code)));
  }
  ereport(ERROR, (errcode(sqlstate),
                  errmsg("%s was ended by signal %d", kProgram, WTERMSIG(child->wait_status))));
}

void start(Child* child) {
  char program[MAXPGPATH];
  if (!rdmacc_find_program(kProgram, program)) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("there is no program \"%s\"", program),
                    errhint("\"make install\" puts it beside the server's programs.")));
  }
  if (!process_start_attended(program, child->words, &child->process, &child->output_fd,
                              &child->error_fd)) {
    child->process = {};
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("could not start \"%s\": %m", program)));
  }
}

}  // namespace

char* rdmacc_run_bench(const RdmaccBenchRun* run) {
  CHECK(bridge_attached() && OidIsValid(MyDatabaseId));
  auto* child = static_cast<Child*>(palloc0(sizeof(Child)));
  initStringInfo(&child->report);
  initStringInfo(&child->line);
  PG_ENSURE_ERROR_CLEANUP(clean_up, PointerGetDatum(child));
  {
    add_words(child, run);
    start(child);
    read_to_the_end(child);
    while (!reaped_within(child, kPollMs)) CHECK_FOR_INTERRUPTS();
    if (!WIFEXITED(child->wait_status) || WEXITSTATUS(child->wait_status) != 0) refuse(child);
  }
  PG_END_ENSURE_ERROR_CLEANUP(clean_up, PointerGetDatum(child));
  clean_up(0, PointerGetDatum(child));
  return child->report.data;
}
