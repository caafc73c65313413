#pragma once
#include <functional>
#include <span>
#include <vector>

#include "engine/durable/file_ops.h"

// A file of the log, or a checkpoint: a header and then blocks, each written at once and on disk
// before the next one is written. So a block that is not whole is the end, and one that is followed
// by a whole one was damaged later.
//
//   header   64 B
//   block    SegmentBlock 32 B, its bytes, padded to 64; it starts at a multiple of 64
//   bytes    records: length 4, kind 1, body (engine/durable/redo_record.h)

namespace rdmacc {

enum class SegmentKind : uint32_t { kLog = 1, kCheckpoint = 2 };

// Whose file it is, and what it follows.
struct SegmentIdentity {
  SegmentKind kind = SegmentKind::kLog;
  uint16_t node = 0;
  uint16_t nodes = 0;
  uint64_t cluster = 0;     // hash of the cluster's name
  uint64_t generation = 0;  // rises with every recovery of the whole cluster
  uint64_t number = 0;      // of the segment; of a checkpoint: the first segment behind it
};

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  SegmentKind kind;
  uint16_t node, nodes;
  uint32_t unused;
  uint64_t cluster, generation, number;
  uint64_t salt;  // random: row bytes that look like a block do not pass for one
  uint64_t checksum;
};
static_assert(sizeof(SegmentHeader) == 64);

struct SegmentBlock {
  uint64_t magic;
  uint64_t number;  // 0, 1, … in its file
  uint64_t bytes;   // of its records
  uint64_t checksum;
};
static_assert(sizeof(SegmentBlock) == 32);

constexpr uint64_t kSegmentMagic = 0x31'67'6F'6C'64'6D'64'72ull;  // "rdmdlog1"
constexpr uint32_t kSegmentVersion = 3;
constexpr uint64_t kBlockMagic = 0x6B'63'6F'6C'62'64'6D'72ull;  // "rmdblock"
constexpr uint64_t kSegmentAlignment = 64;

// Writes one file. A thread at a time; after an error it is worth nothing.
class SegmentWriter {
 public:
  // Its header is on disk then. An error, too, when there is such a file.
  static Result<SegmentWriter> create(const std::string& path, const SegmentIdentity& identity,
                                      FileOps& ops);
  SegmentWriter() = default;

  // Not synced: its caller does that before it writes the next one.
  Status write_block(std::span<const std::byte> records);
  Status sync();
  uint64_t bytes() const { return bytes_; }
  bool open() const { return file_.open(); }

 private:
  OpenFile file_;
  std::string path_;
  FileOps* ops_ = nullptr;
  uint64_t salt_ = 0;
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
  std::vector<std::byte> image_;  // of a block
};

struct SegmentContent {
  SegmentIdentity identity;
  uint64_t bytes = 0;       // up to the end of the last whole block
  uint64_t last_block = 0;  // where that begins; 0: there is none
  uint64_t torn_bytes = 0;  // behind it: of a block that was being written
};

// Visits the records of each whole block, in their order; the first error of `visit` ends it.
// kCorrupt: a block is damaged that others follow, or the file is no such file; the message names
// it and the place. A header that was not written whole is a torn file without blocks, of `bytes`
// 0.
using VisitRecord = std::function<Status(uint8_t kind, std::span<const std::byte> body)>;
Result<SegmentContent> read_segment(const std::string& path, const VisitRecord& visit);

// Appends a record to what becomes a block.
void add_record(uint8_t kind, std::span<const std::byte> body, std::vector<std::byte>& block);
constexpr size_t kRecordHeadBytes = 5;

}  // namespace rdmacc
