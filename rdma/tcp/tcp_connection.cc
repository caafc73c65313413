#include "rdma/tcp/tcp_connection.h"

#include <sys/socket.h>

#include <cerrno>

namespace rdmacc {
namespace {

constexpr size_t kInBytes = 64 * 1024;
constexpr size_t kInBytesMax = sizeof(TcpFrameHeader) + kTcpFrameBytesMax + kInBytes;
constexpr size_t kCompactBytes = 256 * 1024;

}  // namespace

std::byte* TcpConnection::extend(size_t bytes) {
  CHECK(bytes > 0 && out_start_ <= out_.size());
  const size_t before = out_.size();
  out_.resize(before + bytes);
  return out_.data() + before;
}

void TcpConnection::append(std::span<const std::byte> bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

bool TcpConnection::flush() {
  while (out_start_ < out_.size()) {
    const ssize_t sent =
        send(fd(), out_.data() + out_start_, out_.size() - out_start_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      out_start_ += static_cast<size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOTCONN) return false;
    // In words, so that what is put together behind it stays aligned.
    const size_t done = out_start_ & ~size_t{7};
    if (done >= kCompactBytes) {
      out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(done));
      out_start_ -= done;
    }
    return true;
  }
  out_.clear();
  out_start_ = 0;
  return true;
}

bool TcpConnection::fill() {
  DCHECK(in_start_ <= in_end_ && in_end_ <= in_.size());
  if (in_start_ == in_end_) {
    in_start_ = in_end_ = 0;
  } else if (in_.size() - in_end_ < kInBytes / 2 && in_start_ > 0) {
    std::memmove(in_.data(), in_.data() + in_start_, in_end_ - in_start_);
    in_end_ -= in_start_;
    in_start_ = 0;
  }
  if (in_.size() - in_end_ < kInBytes / 2) {
    if (in_.size() >= kInBytesMax) return true;  // there is a whole frame to be dealt with
    in_.resize(std::min(kInBytesMax, in_.empty() ? kInBytes : 2 * in_.size()));
  }
  while (true) {
    const ssize_t got = recv(fd(), in_.data() + in_end_, in_.size() - in_end_, MSG_DONTWAIT);
    if (got > 0) {
      in_end_ += static_cast<size_t>(got);
      return true;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK;
  }
}

void TcpConnection::consume(size_t bytes) {
  CHECK(bytes <= in_end_ - in_start_);
  in_start_ += bytes;
}

}  // namespace rdmacc
