#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "engine/durable/file_ops.h"

namespace rdmacc {

// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rdmacc_durable.XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A disk that fails from the n-th write or sync on; 0: never.
class FailingOps : public FileOps {
 public:
  std::atomic<int> writes_left{0}, syncs_left{0};
  std::atomic<int> writes{0}, syncs{0};
  Status write_all(int fd, const void* from, size_t bytes) override {
    ++writes;
    if (writes_left > 0 && --writes_left == 0) {
      // Half of it, as a full disk does.
      static_cast<void>(FileOps::write_all(fd, from, bytes / 2));
      return Status(Code::kNoSpace, "cannot write the file: No space left on device");
    }
    return FileOps::write_all(fd, from, bytes);
  }
  Status sync_data(int fd) override {
    ++syncs;
    if (syncs_left > 0 && --syncs_left == 0) {
      return Status(Code::kSystem, "cannot sync the file: Input/output error");
    }
    return FileOps::sync_data(fd);
  }
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}
inline void set_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace rdmacc
