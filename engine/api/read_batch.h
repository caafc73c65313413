#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/base/check.h"

namespace rdmacc {

// Where the rows of one batch of keys lie that are read and not kept. The next batch takes their
// place, or the end of this. One thread.
class ReadBatch {
 public:
  // Of so many keys, in a table of records of `record_size` bytes.
  void begin(size_t keys, uint32_t record_size) {
    CHECK(keys > 0 && record_size > 0 && record_size % 8 == 0);
    const size_t bytes = keys * record_size;
    if (bytes > bytes_) {
      records_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      bytes_ = bytes;
    }
    room_ = records_.get();
    long_rows_.clear();
    left_.clear();
  }
  // Where the next records go.
  std::byte* room() const { return room_; }
  void take_room(std::byte* end) {
    CHECK(end >= room_ && end <= records_.get() + bytes_);
    room_ = end;
  }
  // Of a row that lies in none of them.
  std::string_view keep(std::string_view row) { return long_rows_.emplace_back(row); }

  // Keys whose rows the batch does not have, by their number: what the transaction knows of them,
  // or has to find out, is its own.
  void leave(size_t key) { left_.push_back(key); }
  std::span<const size_t> left() const { return left_; }

 private:
  std::unique_ptr<std::byte[]> records_;
  size_t bytes_ = 0;
  std::byte* room_ = nullptr;
  std::deque<std::string> long_rows_;
  std::vector<size_t> left_;
};

}  // namespace rdmacc
