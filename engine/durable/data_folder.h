#pragma once
#include <vector>

#include "engine/durable/log_file.h"
#include "engine/durable/redo_record.h"

// A node's folder on disk:
//
//   lock                one process at a time
//   NUMBER.log          the log, in segments
//   NUMBER.checkpoint   the rows of the node, as old as the first record of segment NUMBER or newer
//
// Files are written once. Segments that are older than the newest checkpoint, and older
// checkpoints, are removed when it is on disk.

namespace rdmacc {

class DataFolder {
 public:
  // Makes the folder (its parent must be there) and takes its lock. kInvalidArgument: another
  // process has it.
  static Result<DataFolder> open(const std::string& path);
  DataFolder() = default;

  const std::string& path() const { return path_; }
  struct Files {
    std::vector<uint64_t> segments, checkpoints;  // numbers, rising
  };
  Result<Files> list() const;
  // Files that `checkpoint` takes the place of, and what was left of one that was being written.
  Status remove_older(uint64_t checkpoint) const;
  std::string checkpoint_path(uint64_t number) const;

 private:
  std::string path_;
  OpenFile lock_;
};

// Rows are added, then finish() puts the file in its place.
class CheckpointWriter {
 public:
  static Result<CheckpointWriter> create(const DataFolder& folder, const SegmentIdentity& identity,
                                         FileOps& ops);
  CheckpointWriter() = default;

  void add(const ListedTable& table);
  void add(const RedoRow& row);
  uint64_t rows() const { return end_.rows; }
  // Writes what was added, if it is a block's worth.
  Status flush_some();
  // It is whole, and on disk. May take as long as a sync of the whole file does.
  Status finish();

 private:
  static constexpr size_t kBlockBytes = 256 * 1024;
  Status flush();

  SegmentWriter writer_;
  std::string new_path_, path_, folder_;
  std::vector<std::byte> block_, body_;
  RedoEnd end_;
};

}  // namespace rdmacc
