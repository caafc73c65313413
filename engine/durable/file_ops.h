#pragma once
#include <string>

#include "rdma/base/status.h"

namespace rdmacc {

// What the log writes to a disk by: a test puts one in its place that fails. Of any thread.
class FileOps {
 public:
  virtual ~FileOps() = default;
  // All of it, or an error; a disk that takes less than all is full.
  virtual Status write_all(int fd, const void* from, size_t bytes);
  virtual Status sync_data(int fd);

  static FileOps& posix();
};

// Owns a descriptor; closes it.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() { close(); }
  OpenFile(OpenFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OpenFile& operator=(OpenFile&& other) noexcept;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// The error names the path.
Result<OpenFile> open_file(const std::string& path, int flags);
// Names that were made or removed in a folder are on disk when it returns.
Status sync_folder(const std::string& folder);
Status read_file(const std::string& path, std::string& content);

}  // namespace rdmacc
