#pragma once
#include "rdma/fabric/fabric.h"
#include "rdma/verbs/verbs_memory.h"
#include "rdma/verbs/verbs_queue_pair.h"

namespace rdmacc {

// A worker's datagrams: one UD queue pair, send slots and receive buffers in registered memory. The
// sender of one is in its immediate data (worker 16 bits, incarnation's low 16 bits) and believed
// only if it came from the queue pair that this worker is known to have. One thread's.
class VerbsDatagrams {
 public:
  struct Peer {
    VerbsDatagramAddress address;
    VerbsPortAddress port;
    VerbsHandle<ibv_ah> route;  // made at the first send
  };

  VerbsDatagrams(const VerbsDevice& device, VerbsMemory& memory, const VerbsOptions& options,
                 WorkerId workers_max)
      : device_(device), memory_(memory), options_(options), peers_(workers_max) {}
  VerbsDatagrams(const VerbsDatagrams&) = delete;
  VerbsDatagrams& operator=(const VerbsDatagrams&) = delete;

  // Makes the queue pair, its completion queues on `channel`, and posts all receives.
  Status open(WorkerId self, uint32_t incarnation, ibv_comp_channel* channel);
  // Where others reach this worker.
  const VerbsDatagramAddress& address() const { return address_; }
  ibv_cq* received() const { return received_.get(); }
  ibv_cq* sent() const { return sent_queue_.get(); }

  void set_peer(WorkerId worker, const VerbsDatagramAddress& address, const VerbsPortAddress& port);
  uint32_t incarnation_of_peer(WorkerId worker) const { return peers_[worker].address.incarnation; }
  // False: no slot is free. The peer must be known.
  bool send(WorkerId to, std::span<const std::byte> bytes);

  struct Arrival {
    WorkerId from = kNoWorker;
    uint32_t incarnation_low = 0;
    uint32_t queue_pair = 0;  // it came from
    std::span<const std::byte> bytes;
    uint32_t buffer = 0;
  };
  // What a completion of received() means: true if it is a datagram, which lies in its buffer until
  // give_back().
  bool arrived(const ibv_wc& work, Arrival* arrival);
  // Is `arrival` from the worker that it names, as far as that one's address is known?
  bool genuine(const Arrival& arrival) const;
  void give_back(const Arrival& arrival);

 private:
  static constexpr uint32_t kSendSlots = 128;
  static constexpr uint32_t kSignalEvery = 32;
  static constexpr uint32_t kReceiveBatch = 32;
  static constexpr uint32_t kRouteHeaderBytes = 40;  // in front of every datagram (GRH)

  void retire_sends();
  Status post_receives(const std::vector<uint32_t>& buffers);
  std::byte* receive_buffer(uint32_t buffer) const {
    return receives_ + static_cast<size_t>(buffer) * stride_;
  }

  const VerbsDevice& device_;
  VerbsMemory& memory_;
  const VerbsOptions& options_;
  WorkerId self_ = kNoWorker;
  VerbsHandle<ibv_cq> received_, sent_queue_;
  std::vector<Peer> peers_;  // by worker
  VerbsHandle<ibv_qp> queue_pair_;
  VerbsDatagramAddress address_;
  uint32_t stride_ = 0;  // of a receive buffer
  std::byte* receives_ = nullptr;
  uint32_t receives_key_ = 0;
  std::vector<uint32_t> returned_;  // buffers to be posted again
  std::byte* sends_ = nullptr;
  uint32_t sends_key_ = 0;
  uint64_t sent_ = 0, sends_retired_ = 0;
};

}  // namespace rdmacc
