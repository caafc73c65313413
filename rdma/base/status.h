#pragma once
#include <memory>
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

// Two words, without a string unless there is something to say: most say that all went well, and
// they are made by the dozen in every transaction.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(Code code) : code_(code) {}
  Status(Code code, std::string message, uint16_t detail = 0)
      : code_(code), detail_(detail), message_(text(std::move(message))) {}
  Status(Status&&) = default;
  Status& operator=(Status&&) = default;
  Status(const Status& other)
      : code_(other.code_), detail_(other.detail_), message_(copy(other.message_)) {}
  Status& operator=(const Status& other) {
    if (this != &other) *this = Status(other);
    return *this;
  }

  // Without a message.
  static Status with_detail(Code code, uint16_t detail) {
    Status status(code);
    status.detail_ = detail;
    return status;
  }

  static Status ok_status() { return Status(); }
  // The errno of the failed call `what`, as kSystem (ENOSPC and ENOMEM: kNoSpace).
  static Status from_errno(const char* what);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  uint16_t detail() const { return detail_; }
  const std::string& message() const { return message_ != nullptr ? *message_ : no_message(); }
  // "no space: arena of node 1 is full"
  std::string to_string() const;
  // A Result's value was asked for without a look at its Status: as a CHECK that says why.
  [[noreturn]] void fail_for_want_of_value() const;

 private:
  using Message = std::unique_ptr<const std::string>;
  static Message text(std::string&& message);
  static Message copy(const Message& message) {
    return message == nullptr ? nullptr : text(std::string(*message));
  }
  static const std::string& no_message();

  Code code_ = Code::kOk;
  uint16_t detail_ = 0;
  Message message_;  // nullptr: none
};
static_assert(sizeof(Status) == 16);

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) { CHECK(!status_.ok()); }  // NOLINT

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() {
    if (!ok()) [[unlikely]]
      status_.fail_for_want_of_value();
    return *value_;
  }
  const T& value() const {
    if (!ok()) [[unlikely]]
      status_.fail_for_want_of_value();
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
