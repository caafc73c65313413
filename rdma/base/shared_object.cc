#include "rdma/base/shared_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rdmacc {
namespace {

constexpr int kSignalRetriesMax = 1000;

}  // namespace

bool cluster_name_valid(const std::string& cluster) {
  if (cluster.empty() || cluster.size() > 64) return false;
  for (const char c : cluster) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alphanumeric && c != '_' && c != '-') return false;
  }
  return true;
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
