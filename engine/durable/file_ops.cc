#include "engine/durable/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rdmacc {
namespace {

constexpr mode_t kMode = 0600;

Status failed(const std::string& what, const std::string& path, int error) {
  const Code code = error == ENOSPC || error == EDQUOT ? Code::kNoSpace : Code::kSystem;
  return Status(code, what + " " + path + ": " + std::strerror(error));
}

}  // namespace

Status FileOps::write_all(int fd, const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t done = write(fd, at, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return failed("cannot write", "the file", done < 0 ? errno : ENOSPC);
    at += done;
    bytes -= static_cast<size_t>(done);
  }
  return Status();
}

// An interrupted call is no success, and trying again after an error none either: the pages may
// count as clean.
Status FileOps::sync_data(int fd) {
  if (fdatasync(fd) == 0) return Status();
  return failed("cannot sync", "the file", errno);
}

FileOps& FileOps::posix() {
  static FileOps ops;
  return ops;
}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

void OpenFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<OpenFile> open_file(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, kMode);
  if (fd < 0) return failed("cannot open", path, errno);
  return OpenFile(fd);
}

Status sync_folder(const std::string& folder) {
  Result<OpenFile> opened = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!opened.ok()) return opened.status();
  if (fsync(opened->fd()) != 0) return failed("cannot sync", folder, errno);
  return Status();
}

Status read_file(const std::string& path, std::string& content) {
  Result<OpenFile> opened = open_file(path, O_RDONLY);
  if (!opened.ok()) return opened.status();
  struct stat status {};
  if (fstat(opened->fd(), &status) != 0) return failed("cannot read", path, errno);
  content.resize(static_cast<size_t>(status.st_size));
  size_t at = 0;
  while (at < content.size()) {
    const ssize_t done = read(opened->fd(), content.data() + at, content.size() - at);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed("cannot read", path, errno);
    if (done == 0) break;
    at += static_cast<size_t>(done);
  }
  content.resize(at);
  return Status();
}

}  // namespace rdmacc
