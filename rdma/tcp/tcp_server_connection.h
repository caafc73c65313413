#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "rdma/fabric/cpu_verbs.h"
#include "rdma/fabric/verb_delays.h"
#include "rdma/tcp/tcp_cluster.h"
#include "rdma/tcp/tcp_connection.h"

namespace rdmacc {

// The other end of a worker's connection, at a node's thread: lets it in, carries its verbs out,
// sends and receives its datagrams. One thread.
class TcpServerConnection {
 public:
  static constexpr uint64_t kGreetingUsMax = 5'000'000;

  // What it needs of the thread.
  struct Host {
    TcpCluster& cluster;
    TcpAdmission& admission;
    std::byte* region;
    CpuVerbs cpu;
    std::vector<Verb> verbs;   // of the chain under way
    std::vector<bool> backed;  // by chunk of the region
    int epoll = -1;
    std::shared_ptr<VerbDelays> delays;  // nullptr: no such fault
  };
  using Deliver = std::function<void(WorkerId from, std::span<const std::byte> datagram)>;

  TcpServerConnection(Host& host, Descriptor socket, std::string peer, uint64_t event_id,
                      uint64_t now_us);

  // False: the connection has ended (why() says how).
  bool start() { return watch(true); }
  bool on_event(uint32_t events, const Deliver& deliver);
  bool flush();
  // False when there is no room now.
  bool send(std::span<const std::byte> datagram);

  bool open() const { return state_ == State::kOpen; }
  uint64_t came_us() const { return came_us_; }
  // Its claim is gone, or it does not greet.
  bool over(uint64_t now_us) const;
  bool unsent() const { return connection_.unsent() > 0; }
  const Membership::Claim& claim() const { return admitted_.claim; }
  const std::string& peer() const { return peer_; }
  const std::string& why() const { return why_; }
  bool take_activity() { return std::exchange(active_, false); }

 private:
  enum class State : uint8_t { kHello, kProof, kOpen };

  bool greet();
  bool carry_out(const TcpFrame& frame);
  bool back(const Verb& verb);
  bool watch(bool fresh);
  bool end(const char* why) {
    why_ = why;
    return false;
  }

  Host& host_;
  TcpConnection connection_;
  const std::string peer_;
  const uint64_t event_id_;
  const uint64_t came_us_;
  State state_ = State::kHello;
  TcpHello hello_{};
  RandomToken nonce_{};
  TcpAdmission::Admitted admitted_{};
  bool active_ = false;
  bool watching_read_ = true, watching_write_ = false;
  std::string why_ = "the connection ended";
};

}  // namespace rdmacc
