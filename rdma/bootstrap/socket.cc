#include "rdma/bootstrap/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rdmacc {
namespace {

// A dead host is noticed within about ten seconds, also while nothing is sent; the kernel answers
// for a process that sleeps.
constexpr int kKeepIdleS = 4, kKeepIntervalS = 2, kKeepCount = 3;
constexpr unsigned kUserTimeoutMs = 10'000;

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

Status prepare(int fd) {
  const bool done = set(fd, IPPROTO_TCP, TCP_NODELAY, 1) && set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
                    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleS) &&
                    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalS) &&
                    set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount) &&
                    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  return done ? Status() : Status::from_errno("setsockopt");
}

}  // namespace

void Descriptor::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

std::string SocketAddress::to_string() const {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (bytes == 0 ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&storage), bytes, host, sizeof(host), port,
                  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  const bool six = std::strchr(host, ':') != nullptr;
  return (six ? "[" : "") + std::string(host) + (six ? "]:" : ":") + port;
}

void SocketAddress::set_port(uint16_t port) {
  if (storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
  }
}

Result<SocketAddress> resolve_address(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Status(Code::kInvalidArgument, host + ": " + gai_strerror(error));
  SocketAddress address;
  CHECK(found != nullptr && found->ai_addrlen <= sizeof(address.storage));
  address.bytes = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

Result<Descriptor> listen_at(const SocketAddress& address, int backlog) {
  CHECK(address.bytes > 0 && backlog > 0);
  Descriptor listener(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (listener.get() < 0) return Status::from_errno("socket");
  if (!set(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1)) return Status::from_errno("setsockopt");
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) !=
          0 ||
      listen(listener.get(), backlog) != 0) {
    const std::string why = std::strerror(errno);
    return Status(Code::kSystem, "cannot listen at " + address.to_string() + ": " + why);
  }
  return listener;
}

Result<uint16_t> port_of(const Descriptor& socket) {
  SocketAddress address;
  address.bytes = sizeof(address.storage);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) !=
      0) {
    return Status::from_errno("getsockname");
  }
  const in_port_t port = address.storage.ss_family == AF_INET6
                             ? reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port
                             : reinterpret_cast<const sockaddr_in&>(address.storage).sin_port;
  return ntohs(port);
}

Result<Descriptor> start_connect(const SocketAddress& address) {
  CHECK(address.bytes > 0);
  Descriptor connection(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (connection.get() < 0) return Status::from_errno("socket");
  RDMACC_RETURN_IF_ERROR(prepare(connection.get()));
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address.storage),
              address.bytes) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    const std::string why = std::strerror(errno);
    return Status(Code::kUnavailable, address.to_string() + ": " + why);
  }
  return connection;
}

Descriptor accept_from(const Descriptor& listener, SocketAddress* peer) {
  peer->bytes = sizeof(peer->storage);
  Descriptor accepted(accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer->storage),
                              &peer->bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.get() >= 0 && !prepare(accepted.get()).ok()) accepted.reset();
  return accepted;
}

Status connect_outcome(const Descriptor& socket) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  return error == 0 ? Status() : Status(Code::kUnavailable, std::strerror(error));
}

}  // namespace rdmacc
