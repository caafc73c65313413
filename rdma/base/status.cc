#include "rdma/base/status.h"

#include <cerrno>
#include <cstring>

namespace rdmacc {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kAborted:
      return "aborted";
    case Code::kCancelled:
      return "cancelled";
    case Code::kTimeout:
      return "timeout";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kNoSpace:
      return "no space";
    case Code::kWriteSetFull:
      return "write set full";
    case Code::kTooLarge:
      return "too large";
    case Code::kDuplicateKey:
      return "duplicate key";
    case Code::kNotFound:
      return "not found";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNoWorkerSlot:
      return "no worker slot";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kSystem:
      return "system";
  }
  return "unknown";
}

Status::Message Status::text(std::string&& message) {
  return message.empty() ? nullptr : std::make_unique<const std::string>(std::move(message));
}

const std::string& Status::no_message() {
  static const std::string empty;
  return empty;
}

Status Status::from_errno(const char* what) {
  const int saved = errno;
  const Code code = saved == ENOSPC || saved == ENOMEM ? Code::kNoSpace : Code::kSystem;
  return Status(code, std::string(what) + ": " + std::strerror(saved));
}

void Status::fail_for_want_of_value() const {
  check_failed(("a value, not " + to_string()).c_str(), __FILE__, __LINE__);
}

std::string Status::to_string() const {
  if (message_ == nullptr) return code_name(code_);
  return std::string(code_name(code_)) + ": " + *message_;
}

}  // namespace rdmacc
