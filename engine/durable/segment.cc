#include "engine/durable/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cstring>
#include <random>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint64_t aligned(uint64_t bytes) {
  return (bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

uint64_t checksum_of(SegmentHeader header) {
  header.checksum = 0;
  return XXH3_64bits(&header, sizeof(header));
}

uint64_t checksum_of(SegmentBlock block, const std::byte* records, uint64_t salt) {
  block.checksum = XXH3_64bits(records, block.bytes);
  return XXH3_64bits_withSeed(&block, sizeof(block), salt);
}

Status corrupt(const std::string& path, uint64_t at, const std::string& what) {
  return Status(Code::kCorrupt, path + " at byte " + std::to_string(at) + ": " + what);
}

// A file as it is, for reading.
class MappedFile {
 public:
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path) {
    Result<OpenFile> file = open_file(path, O_RDONLY);
    if (!file.ok()) return file.status();
    struct stat status {};
    if (fstat(file->fd(), &status) != 0) return Status::from_errno("fstat of a log file");
    auto mapped = std::make_unique<MappedFile>();
    mapped->bytes_ = static_cast<uint64_t>(status.st_size);
    if (mapped->bytes_ == 0) return Result<std::unique_ptr<MappedFile>>(std::move(mapped));
    void* at = mmap(nullptr, mapped->bytes_, PROT_READ, MAP_PRIVATE, file->fd(), 0);
    if (at == MAP_FAILED) return Status::from_errno("mmap of a log file");
    mapped->at_ = static_cast<const std::byte*>(at);
    madvise(at, mapped->bytes_, MADV_SEQUENTIAL);
    return Result<std::unique_ptr<MappedFile>>(std::move(mapped));
  }
  MappedFile() = default;
  ~MappedFile() {
    if (at_ != nullptr) munmap(const_cast<std::byte*>(at_), bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* at(uint64_t offset) const { return at_ + offset; }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::byte* at_ = nullptr;
  uint64_t bytes_ = 0;
};

// The whole block at `offset`, if one is there.
bool block_at(const MappedFile& file, uint64_t offset, uint64_t salt, SegmentBlock& block) {
  if (offset > file.bytes() || file.bytes() - offset < sizeof(SegmentBlock)) return false;
  std::memcpy(&block, file.at(offset), sizeof(block));
  if (block.magic != kBlockMagic) return false;
  if (block.bytes > file.bytes() - offset - sizeof(block)) return false;
  return checksum_of(block, file.at(offset + sizeof(block)), salt) == block.checksum;
}

Status visit_records(const std::byte* at, uint64_t bytes, const VisitRecord& visit) {
  while (bytes > 0) {
    uint32_t body_bytes = 0;
    if (bytes < kRecordHeadBytes) return Status(Code::kCorrupt, "a record is cut");
    std::memcpy(&body_bytes, at, sizeof(body_bytes));
    const uint64_t record_bytes = kRecordHeadBytes + uint64_t{body_bytes};
    if (record_bytes > bytes) return Status(Code::kCorrupt, "a record is longer than its block");
    const auto kind = static_cast<uint8_t>(at[sizeof(body_bytes)]);
    RDMACC_RETURN_IF_ERROR(visit(kind, {at + kRecordHeadBytes, body_bytes}));
    at += record_bytes;
    bytes -= record_bytes;
  }
  return Status();
}

bool read_header(const MappedFile& file, SegmentHeader& header) {
  if (file.bytes() < sizeof(header)) return false;
  std::memcpy(&header, file.at(0), sizeof(header));
  return header.magic == kSegmentMagic && header.checksum == checksum_of(header);
}

}  // namespace

void add_record(uint8_t kind, std::span<const std::byte> body, std::vector<std::byte>& block) {
  CHECK(body.size() <= UINT32_MAX);
  const auto bytes = static_cast<uint32_t>(body.size());
  const size_t at = block.size();
  block.resize(at + kRecordHeadBytes + body.size());
  std::memcpy(block.data() + at, &bytes, sizeof(bytes));
  block[at + sizeof(bytes)] = static_cast<std::byte>(kind);
  if (!body.empty()) std::memcpy(block.data() + at + kRecordHeadBytes, body.data(), body.size());
}

Result<SegmentWriter> SegmentWriter::create(const std::string& path,
                                            const SegmentIdentity& identity, FileOps& ops) {
  Result<OpenFile> file = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return file.status();
  SegmentWriter writer;
  writer.file_ = std::move(*file);
  writer.path_ = path;
  writer.ops_ = &ops;
  writer.salt_ = (uint64_t{std::random_device()()} << 32) ^ std::random_device()();
  SegmentHeader header{};
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.kind = identity.kind;
  header.node = identity.node;
  header.nodes = identity.nodes;
  header.cluster = identity.cluster;
  header.generation = identity.generation;
  header.number = identity.number;
  header.salt = writer.salt_;
  header.checksum = checksum_of(header);
  const Status written = ops.write_all(writer.file_.fd(), &header, sizeof(header));
  if (!written.ok()) return Status(written.code(), path + ": " + written.message());
  writer.bytes_ = sizeof(header);
  RDMACC_RETURN_IF_ERROR(writer.sync());  // before a block may follow
  return writer;
}

Status SegmentWriter::write_block(std::span<const std::byte> records) {
  CHECK(file_.open() && !records.empty());
  SegmentBlock block{kBlockMagic, blocks_++, records.size(), 0};
  block.checksum = checksum_of(block, records.data(), salt_);
  image_.assign(aligned(sizeof(block) + records.size()), std::byte{0});
  std::memcpy(image_.data(), &block, sizeof(block));
  std::memcpy(image_.data() + sizeof(block), records.data(), records.size());
  const Status written = ops_->write_all(file_.fd(), image_.data(), image_.size());
  if (!written.ok()) return Status(written.code(), path_ + ": " + written.message());
  bytes_ += image_.size();
  constexpr size_t kKeptBytes = 4 << 20;
  if (image_.capacity() > kKeptBytes) std::vector<std::byte>().swap(image_);
  return Status();
}

Status SegmentWriter::sync() {
  const Status synced = ops_->sync_data(file_.fd());
  return synced.ok() ? synced : Status(synced.code(), path_ + ": " + synced.message());
}

Result<SegmentContent> read_segment(const std::string& path, const VisitRecord& visit) {
  Result<std::unique_ptr<MappedFile>> opened = MappedFile::open(path);
  if (!opened.ok()) return opened.status();
  const MappedFile& file = **opened;
  SegmentContent content;
  SegmentHeader header;
  if (!read_header(file, header)) {
    // Nothing was ever written behind a header that was not on disk.
    if (file.bytes() > sizeof(header)) return corrupt(path, 0, "this is no file of rows");
    content.torn_bytes = file.bytes();
    return content;
  }
  if (header.version != kSegmentVersion) {
    return corrupt(path, 0, "another version of rdmacc has written this file");
  }
  content.identity = {header.kind,    header.node,       header.nodes,
                      header.cluster, header.generation, header.number};
  uint64_t at = sizeof(header);
  uint64_t number = 0;
  SegmentBlock block;
  while (at < file.bytes() && block_at(file, at, header.salt, block) && block.number == number) {
    const Status visited = visit_records(file.at(at + sizeof(block)), block.bytes, visit);
    if (!visited.ok()) {
      return visited.code() == Code::kCorrupt ? corrupt(path, at, visited.message()) : visited;
    }
    content.last_block = at;
    at += aligned(sizeof(block) + block.bytes);
    ++number;
  }
  for (uint64_t later = at; later < file.bytes(); later += kSegmentAlignment) {
    if (block_at(file, later, header.salt, block)) {
      return corrupt(path, at, "a block is damaged that others follow");
    }
  }
  content.bytes = std::min(at, file.bytes());
  content.torn_bytes = file.bytes() - content.bytes;
  return content;
}

}  // namespace rdmacc
