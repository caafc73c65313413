#include "engine/durable/log_file.h"

#include <chrono>

#include "rdma/base/check.h"

namespace rdmacc {

std::string segment_path(const std::string& folder, uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "/%016llx.log", static_cast<unsigned long long>(number));
  return folder + name;
}

Result<std::unique_ptr<LogFile>> LogFile::open(Options options) {
  std::unique_ptr<LogFile> file(new LogFile(std::move(options)));
  const Options& own = file->options_;
  CHECK(own.identity.number > 0 && own.ops != nullptr);
  Result<SegmentWriter> writer =
      SegmentWriter::create(segment_path(own.folder, own.identity.number), own.identity, *own.ops);
  if (!writer.ok()) return writer.status();
  RDMACC_RETURN_IF_ERROR(sync_folder(own.folder));
  file->writer_ = std::move(*writer);
  file->last_segment_ = own.identity.number;
  file->thread_ = std::thread([log = file.get()] { log->run(); });
  return file;
}

LogFile::~LogFile() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

uint64_t LogFile::append(uint8_t kind, std::span<const std::byte> body) {
  bool was_empty = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    was_empty = batches_.empty();
    if (was_empty) batches_.emplace_back();
    Batch& batch = batches_.back();
    add_record(kind, body, batch.records);
    appended_ += kRecordHeadBytes + body.size();
    segment_bytes_ += kRecordHeadBytes + body.size();
    batch.end = appended_;
  }
  if (was_empty) work_.notify_one();
  return appended_;
}

uint64_t LogFile::begin_segment() {
  const std::lock_guard<std::mutex> lock(mutex_);
  segment_bytes_ = 0;
  Batch& batch = batches_.emplace_back();
  batch.new_segment = ++last_segment_;
  batch.end = appended_;
  work_.notify_one();
  return last_segment_;
}

Status LogFile::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

bool LogFile::wait_durable(uint64_t position, uint64_t ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  progress_.wait_for(lock, std::chrono::milliseconds(ms),
                     [&] { return failed() || durable() >= position; });
  return !failed() && durable() >= position;
}

Status LogFile::write(const Batch& batch) {
  if (batch.new_segment != 0) {
    SegmentIdentity identity = options_.identity;
    identity.number = batch.new_segment;
    Result<SegmentWriter> next = SegmentWriter::create(
        segment_path(options_.folder, identity.number), identity, *options_.ops);
    if (!next.ok()) return next.status();
    RDMACC_RETURN_IF_ERROR(sync_folder(options_.folder));
    writer_ = std::move(*next);
  }
  if (batch.records.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(writer_.write_block(batch.records));
  syncs_.fetch_add(1, std::memory_order_relaxed);
  return writer_.sync();
}

void LogFile::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || !batches_.empty(); });
    if (batches_.empty()) return;
    const Batch batch = std::move(batches_.front());
    batches_.pop_front();
    lock.unlock();
    const Status status = write(batch);
    lock.lock();
    if (status.ok()) {
      durable_.store(batch.end, std::memory_order_release);
    } else {
      failure_ = status;
      failed_.store(true, std::memory_order_release);
    }
    progress_.notify_all();
    if (options_.on_progress) options_.on_progress();
    if (!status.ok()) return;  // L2
  }
}

}  // namespace rdmacc
