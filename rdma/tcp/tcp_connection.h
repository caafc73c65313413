#pragma once
#include <vector>

#include "rdma/bootstrap/socket.h"
#include "rdma/tcp/tcp_wire.h"

namespace rdmacc {

// A non-blocking connection with a buffer in either direction, one thread's. Frames are put
// together in place, and everything that has gathered since is sent by one call of flush().
class TcpConnection {
 public:
  explicit TcpConnection(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  const Descriptor& socket() const { return socket_; }

  // ---- Out
  // Room for `bytes` more, a multiple of 8; it is zeroed.
  std::byte* extend(size_t bytes);
  void append(std::span<const std::byte> bytes);
  size_t unsent() const { return out_.size() - out_start_; }
  // As much as the socket takes; false when the connection has ended.
  bool flush();

  // ---- In
  // Reads what has arrived, up to a bound; false when the connection has ended.
  bool fill();
  std::span<const std::byte> arrived() const {
    return {in_.data() + in_start_, in_end_ - in_start_};
  }
  // The first `bytes` of it have been dealt with.
  void consume(size_t bytes);

 private:
  Descriptor socket_;
  std::vector<std::byte> out_;
  size_t out_start_ = 0;
  std::vector<std::byte> in_;
  size_t in_start_ = 0, in_end_ = 0;
};

}  // namespace rdmacc
