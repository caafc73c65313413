#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "rdma/shm_control.h"

// Which process holds which worker id, and whether that process still lives; and the names and
// modes of shared memory objects.

namespace rdmacc {
namespace {

constexpr int kSignalRetriesMax = 1000;

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

ShmProcess ShmProcess::self() {
  const auto pid = static_cast<uint32_t>(getpid());
  ProcessStat stat;
  // Without /proc, processes are told apart by their pid alone.
  if (!read_process_stat(pid, &stat)) return ShmProcess{pid, 0};
  return ShmProcess{pid, static_cast<uint16_t>(stat.start_time)};
}

bool ShmProcess::alive(const ShmOwner& owner) {
  if (kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return false;
  ProcessStat stat;
  if (!read_process_stat(owner.pid, &stat)) {
    return kill(static_cast<pid_t>(owner.pid), 0) == 0 || errno != ESRCH;
  }
  // A killed process is a zombie until its parent has waited for it; its main thread may be one
  // while others have not ended yet (F6: these may still carry out verbs).
  if (stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1)) return false;
  return static_cast<uint16_t>(stat.start_time) == owner.start_time;
}

uint32_t ShmControl::claim(WorkerId worker) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  uint64_t seen = word.load(std::memory_order_acquire);
  const ShmOwner before = ShmOwner::unpack(seen);
  if (before.state != ShmOwner::State::kFree) {
    // A coordinator's slot must be released first: its transactions are still to be resolved.
    if (!topology_.is_node_worker(worker) || ShmProcess::alive(before)) return 0;
  }
  const ShmProcess self = ShmProcess::self();
  CHECK(self.pid < 1u << 22);
  ShmOwner owner;
  owner.state = ShmOwner::State::kClaimed;
  owner.pid = self.pid;
  owner.start_time = self.start_time;
  owner.incarnation = before.incarnation == ShmOwner::kIncarnationMax ? 1 : before.incarnation + 1;
  if (!word.compare_exchange_strong(seen, owner.pack(), std::memory_order_acq_rel)) return 0;
  return owner.incarnation;
}

void ShmControl::publish(WorkerId worker, uint32_t incarnation) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  ShmOwner owner = ShmOwner::unpack(word.load(std::memory_order_acquire));
  CHECK(owner.state == ShmOwner::State::kClaimed && owner.incarnation == incarnation);
  owner.state = ShmOwner::State::kLive;
  word.store(owner.pack(), std::memory_order_release);
}

void ShmControl::leave(WorkerId worker, uint32_t incarnation) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  uint64_t seen = word.load(std::memory_order_acquire);
  const ShmOwner owner = ShmOwner::unpack(seen);
  // After fork() the child has a copy of its parent's endpoint, but not its slot.
  if (owner.incarnation != incarnation || owner.pid != static_cast<uint32_t>(getpid())) return;
  ShmOwner free;
  free.incarnation = incarnation;
  word.compare_exchange_strong(seen, free.pack(), std::memory_order_acq_rel);
}

void ShmControl::release(WorkerId worker) {
  std::atomic<uint64_t>& word = slot(worker).owner;
  uint64_t seen = word.load(std::memory_order_acquire);
  const ShmOwner owner = ShmOwner::unpack(seen);
  if (owner.state == ShmOwner::State::kFree || ShmProcess::alive(owner)) return;
  ShmOwner free;
  free.incarnation = owner.incarnation;
  word.compare_exchange_strong(seen, free.pack(), std::memory_order_acq_rel);
}

std::vector<WorkerId> ShmControl::departed() const {
  std::vector<WorkerId> workers;
  for (WorkerId worker = topology_.node_workers(); worker < topology_.workers_max; ++worker) {
    const uint64_t word = slot(worker).owner.load(std::memory_order_acquire);
    const ShmOwner owner = ShmOwner::unpack(word);
    if (owner.state != ShmOwner::State::kFree && !ShmProcess::alive(owner)) {
      workers.push_back(worker);
    }
  }
  return workers;
}

bool shm_cluster_name_valid(const std::string& cluster) {
  if (cluster.empty() || cluster.size() > 64) return false;
  for (const char c : cluster) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alphanumeric && c != '_' && c != '-') return false;
  }
  return true;
}

std::string shm_control_name(const std::string& cluster) { return "/rdmacc." + cluster + ".ctl"; }

std::string shm_region_name(const std::string& cluster, NodeId node) {
  return "/rdmacc." + cluster + ".node" + std::to_string(node);
}

Result<int> shm_open_checked(const std::string& name) {
  const int fd = shm_open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
  if (fd < 0 && errno == ENOENT) return Status(Code::kNotFound, name);
  if (fd < 0) return Status::from_errno("shm_open");
  struct stat attributes;
  if (fstat(fd, &attributes) != 0) {
    const Status status = Status::from_errno("fstat");
    close(fd);
    return status;
  }
  // A process that may write the object may forge every row; another user's object is a trap.
  if (attributes.st_uid != geteuid() || (attributes.st_mode & 07777) != 0600 ||
      !S_ISREG(attributes.st_mode)) {
    close(fd);
    return Status(Code::kInvalidArgument, name + " has another owner or mode than 0600");
  }
  return fd;
}

Result<int> shm_open_or_make(const std::string& name) {
  const int made = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (made < 0 && errno != EEXIST) return Status::from_errno("shm_open");
  if (made >= 0) {
    const bool moded = fchmod(made, 0600) == 0;
    close(made);
    if (!moded) return Status::from_errno("fchmod");
  }
  return shm_open_checked(name);
}

Status shm_back(int fd, uint64_t offset, uint64_t bytes) {
  for (int attempt = 0; attempt < kSignalRetriesMax; ++attempt) {
    const int error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    if (error == 0) return Status::ok_status();
    if (error == EINTR) continue;
    errno = error;
    return Status::from_errno("posix_fallocate");
  }
  return Status(Code::kSystem, "posix_fallocate: interrupted again and again");
}

}  // namespace rdmacc
