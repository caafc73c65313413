#pragma once
#include <optional>
#include <string>
#include <utility>

#include "rdma/base/base.h"
#include "rdma/base/check.h"
#include "rdma/base/code.h"

// The outcome of an operation that can fail in expected ways. Programmer errors are CHECKs
// instead, and a concurrency-control conflict is kAborted with an AbortReason in detail().
// No exception is thrown in rdma/ or engine/.

namespace rdmacc {

const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(Code code, std::string message = {}, uint16_t detail = 0)
      : code_(code), detail_(detail), message_(std::move(message)) {}

  static Status ok_status() { return Status(); }
  // The errno of the failed call `what`, as kSystem (ENOSPC and ENOMEM: kNoSpace).
  static Status from_errno(const char* what);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  uint16_t detail() const { return detail_; }
  const std::string& message() const { return message_; }
  // "no space: arena of node 1 is full"
  std::string to_string() const;

 private:
  Code code_ = Code::kOk;
  uint16_t detail_ = 0;
  std::string message_;
};

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) { CHECK(!status_.ok()); }  // NOLINT

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() {
    CHECK(ok());
    return *value_;
  }
  const T& value() const {
    CHECK(ok());
    return *value_;
  }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

// Returns from the enclosing function when the Status expression is not ok.
#define RDMACC_RETURN_IF_ERROR(expression)           \
  do {                                               \
    ::rdmacc::Status rdmacc_status_ = (expression);  \
    if (!rdmacc_status_.ok()) return rdmacc_status_; \
  } while (false)

}  // namespace rdmacc
