#include "engine/bench/loopback_ping.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "engine/bench/machine_limits.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint64_t kRoundTrips = 5'000;  // of one measurement
constexpr int kPatienceMs = 10'000;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool send_all(const std::vector<char>& bytes) const {
    return write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  bool receive_all(std::vector<char>& bytes) const {
    for (size_t got = 0; got < bytes.size();) {
      pollfd ready = {fd_, POLLIN, 0};
      if (poll(&ready, 1, kPatienceMs) != 1) return false;
      const ssize_t more = read(fd_, bytes.data() + got, bytes.size() - got);
      if (more <= 0) return false;
      got += static_cast<size_t>(more);
    }
    return true;
  }

 private:
  const int fd_;
};

void send_at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Until the other side closes.
void echo(const sockaddr_in& address, size_t bytes) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return;
  }
  send_at_once(socket.fd());
  std::vector<char> message(bytes);
  while (socket.receive_all(message) && socket.send_all(message)) {
  }
}

Result<double> best_round_trip_ns(const Socket& socket, size_t bytes,
                                  const std::atomic<bool>& interrupted) {
  std::vector<char> message(bytes, 'x');
  double best = 0;
  for (uint32_t i = 0; i < kMeasurements; i++) {
    const uint64_t start_ns = monotonic_ns();
    for (uint64_t trip = 0; trip < kRoundTrips; trip++) {
      if (interrupted.load()) return Status(Code::kCancelled, "interrupted");
      if (!socket.send_all(message) || !socket.receive_all(message)) {
        return Status(Code::kUnavailable, "the other side of a loopback connection is gone");
      }
    }
    const double ns = static_cast<double>(monotonic_ns() - start_ns) / kRoundTrips;
    best = i == 0 ? ns : std::min(best, ns);
  }
  return best;
}

Result<double> ping(const Socket& listener, size_t bytes, const std::atomic<bool>& interrupted) {
  pollfd ready = {listener.fd(), POLLIN, 0};
  if (poll(&ready, 1, kPatienceMs) != 1) {
    return Status(Code::kTimeout, "no connection over loopback");
  }
  const Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.fd() < 0) return Status::from_errno("accept");
  send_at_once(socket.fd());
  return best_round_trip_ns(socket, bytes, interrupted);
}

}  // namespace

Result<double> loopback_round_trip_ns(size_t bytes, const std::atomic<bool>& interrupted) {
  CHECK(bytes > 0);
  const Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.fd(), any, length) != 0 || listen(listener.fd(), 1) != 0 ||
      getsockname(listener.fd(), any, &length) != 0) {
    return Status::from_errno("listen");
  }
  const pid_t child = fork();
  if (child < 0) return Status::from_errno("fork");
  if (child == 0) {
    echo(address, bytes);
    _exit(0);
  }
  const Result<double> ns = ping(listener, bytes, interrupted);
  waitpid(child, nullptr, 0);
  return ns;
}

}  // namespace rdmacc
