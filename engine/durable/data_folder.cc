#include "engine/durable/data_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rdmacc {
namespace {

Status failed(const std::string& what, const std::string& path) {
  return Status(Code::kSystem, what + " " + path + ": " + std::strerror(errno));
}

// NUMBER.suffix; false for another name.
bool parse_name(const char* name, const char* suffix, uint64_t& number) {
  unsigned long long value = 0;
  int used = 0;
  if (std::sscanf(name, "%16llx.%n", &value, &used) != 1 || used != 17) return false;
  number = value;
  return std::strcmp(name + used, suffix) == 0;
}

Status remove_file(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return Status();
  return failed("cannot remove", path);
}

}  // namespace

Result<DataFolder> DataFolder::open(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("cannot make", path);
  Result<OpenFile> lock = open_file(path + "/lock", O_RDWR | O_CREAT);
  if (!lock.ok()) return lock.status();
  if (flock(lock->fd(), LOCK_EX | LOCK_NB) != 0) {
    return Status(Code::kInvalidArgument, path + " is in use by another node");
  }
  DataFolder folder;
  folder.path_ = path;
  folder.lock_ = std::move(*lock);
  return folder;
}

Result<DataFolder::Files> DataFolder::list() const {
  DIR* opened = opendir(path_.c_str());
  if (opened == nullptr) return failed("cannot read", path_);
  Files files;
  while (const dirent* entry = readdir(opened)) {
    uint64_t number = 0;
    if (parse_name(entry->d_name, "log", number)) files.segments.push_back(number);
    if (parse_name(entry->d_name, "checkpoint", number)) files.checkpoints.push_back(number);
  }
  closedir(opened);
  std::sort(files.segments.begin(), files.segments.end());
  std::sort(files.checkpoints.begin(), files.checkpoints.end());
  return files;
}

Status DataFolder::remove_older(uint64_t checkpoint) const {
  Result<Files> files = list();
  if (!files.ok()) return files.status();
  for (const uint64_t number : files->segments) {
    if (number < checkpoint) RDMACC_RETURN_IF_ERROR(remove_file(segment_path(path_, number)));
  }
  for (const uint64_t number : files->checkpoints) {
    if (number < checkpoint) RDMACC_RETURN_IF_ERROR(remove_file(checkpoint_path(number)));
  }
  return Status();
}

std::string DataFolder::checkpoint_path(uint64_t number) const {
  char name[40];
  std::snprintf(name, sizeof(name), "/%016llx.checkpoint", static_cast<unsigned long long>(number));
  return path_ + name;
}

Result<CheckpointWriter> CheckpointWriter::create(const DataFolder& folder,
                                                  const SegmentIdentity& identity, FileOps& ops) {
  CHECK(identity.kind == SegmentKind::kCheckpoint);
  CheckpointWriter made;
  made.folder_ = folder.path();
  made.path_ = folder.checkpoint_path(identity.number);
  made.new_path_ = folder.path() + "/new";
  RDMACC_RETURN_IF_ERROR(remove_file(made.new_path_));
  Result<SegmentWriter> writer = SegmentWriter::create(made.new_path_, identity, ops);
  if (!writer.ok()) return writer.status();
  made.writer_ = std::move(*writer);
  return made;
}

void CheckpointWriter::add(const ListedTable& table) {
  body_.clear();
  encode(table, body_);
  add_record(static_cast<uint8_t>(RedoKind::kCreated), body_, block_);
  ++end_.tables;
}

void CheckpointWriter::add(const RedoRow& row) {
  body_.clear();
  encode(row, body_);
  add_record(static_cast<uint8_t>(RedoKind::kRow), body_, block_);
  ++end_.rows;
}

Status CheckpointWriter::flush() {
  if (block_.empty()) return Status();
  const Status written = writer_.write_block(block_);
  block_.clear();
  return written;
}

Status CheckpointWriter::flush_some() { return block_.size() < kBlockBytes ? Status() : flush(); }

Status CheckpointWriter::finish() {
  body_.clear();
  encode(end_, body_);
  add_record(static_cast<uint8_t>(RedoKind::kEnd), body_, block_);
  RDMACC_RETURN_IF_ERROR(flush());
  RDMACC_RETURN_IF_ERROR(writer_.sync());
  if (rename(new_path_.c_str(), path_.c_str()) != 0) return failed("cannot rename", new_path_);
  return sync_folder(folder_);
}

}  // namespace rdmacc
