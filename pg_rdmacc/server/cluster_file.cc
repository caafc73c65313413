#include "pg_rdmacc/server/cluster_file.h"

extern "C" {
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fd.h"
}

namespace {

constexpr const char* kPath = "rdmacc_cluster"; /* a server process's directory is the data's */
constexpr const char* kNewPath = "rdmacc_cluster.new";
constexpr const char* kFirstLine = "rdmacc cluster file 1\n";

bool read_lines(FILE* stream, ClusterFile* file) {
  char line[256];
  if (fgets(line, sizeof(line), stream) == nullptr || strcmp(line, kFirstLine) != 0) return false;
  while (fgets(line, sizeof(line), stream) != nullptr) {
    int node = 0;
    int pid = 0;
    unsigned long ticks = 0;
    unsigned restarts = 0;
    int flag = 0;
    if (sscanf(line, "name %64[A-Za-z0-9_-]", file->name) == 1) continue;
    if (sscanf(line, "postmaster %d %lu", &pid, &ticks) == 2) {
      file->postmaster = {pid, ticks};
    } else if (sscanf(line, "stopped %d", &flag) == 1) {
      file->stopped = flag != 0;
    } else if (sscanf(line, "fresh %d", &flag) == 1) {
      file->fresh = flag != 0;
    } else if (sscanf(line, "disk %d", &flag) == 1) {
      file->on_disk = flag != 0;
    } else if (sscanf(line, "fabric %15[a-z]", file->fabric) == 1) {
      continue;
    } else if (sscanf(line, "stamp %lx", &ticks) == 1) {
      file->stamp = ticks;
    } else if (sscanf(line, "node %d %d %lu %u", &node, &pid, &ticks, &restarts) == 4) {
      if (node < 0 || node >= RDMACC_NODES_MAX) return false;
      file->processes[node] = {pid, ticks};
      file->restarts[node] = restarts;
      file->nodes = Max(file->nodes, node + 1);
    } else {
      return false;
    }
  }
  return file->name[0] != '\0';
}

}  // namespace

bool cluster_file_read(ClusterFile* file) {
  memset(file, 0, sizeof(*file));
  strlcpy(file->fabric, "shm", sizeof(file->fabric)); /* a file that does not say */
  FILE* stream = AllocateFile(kPath, "r");
  if (stream == nullptr) {
    if (errno != ENOENT) {
      ereport(LOG, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", kPath)));
    }
    return false;
  }
  const bool understood = read_lines(stream, file);
  FreeFile(stream);
  if (!understood) {
    ereport(LOG, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("file \"%s\" is not valid", kPath),
                  errdetail("Shared memory of an earlier rdmacc cluster may be left over.")));
  }
  return understood;
}

void cluster_file_write(const ClusterFile* file) {
  CHECK(file->name[0] != '\0' && file->nodes >= 0 && file->nodes <= RDMACC_NODES_MAX);
  FILE* stream = AllocateFile(kNewPath, "w");
  if (stream == nullptr) {
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", kNewPath)));
  }
  fprintf(stream,
          "%sname %s\npostmaster %d %lu\nstopped %d\nfresh %d\ndisk %d\nfabric %s\nstamp %lx\n",
          kFirstLine, file->name, file->postmaster.pid, file->postmaster.start_ticks, file->stopped,
          file->fresh, file->on_disk, file->fabric, file->stamp);
  for (int node = 0; node < file->nodes; ++node) {
    fprintf(stream, "node %d %d %lu %u\n", node, file->processes[node].pid,
            file->processes[node].start_ticks, file->restarts[node]);
  }
  const bool failed = fflush(stream) != 0 || ferror(stream) != 0;
  if (FreeFile(stream) != 0 || failed) {
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", kNewPath)));
  }
  durable_rename(kNewPath, kPath, ERROR);
}
