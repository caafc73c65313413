#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "rdma/base/status.h"

// Non-blocking TCP sockets with the settings that all our connections have.

namespace rdmacc {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string to_string() const;  // "10.0.0.1:7400"
  void set_port(uint16_t port);
};

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_;
};

// Looks the host up (it may be an address); kInvalidArgument when there is none. May block where
// names are looked up by a name server.
Result<SocketAddress> resolve_address(const std::string& host, uint16_t port);

// port 0: any.
Result<Descriptor> listen_at(const SocketAddress& address, int backlog);
Result<uint16_t> port_of(const Descriptor& socket);
// The connection is under way when this returns.
Result<Descriptor> start_connect(const SocketAddress& address);
// One that has arrived; -1 in it when there is none. `peer` is told its address.
Descriptor accept_from(const Descriptor& listener, SocketAddress* peer);
// How the connection attempt ended.
Status connect_outcome(const Descriptor& socket);

}  // namespace rdmacc
