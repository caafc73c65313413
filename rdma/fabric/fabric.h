#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rdma/base/random.h"
#include "rdma/base/status.h"
#include "rdma/fabric/verb.h"

// The contract of every fabric (shm, tcp, verbs, sim). The memory of other nodes, datagrams, time
// and random numbers are had through it alone; no code above knows which fabric it runs on.
//
//  F1  A chain of verbs for one node executes in order there. Chains are not atomic and other
//      initiators' verbs may fall between any two of its verbs. On a NIC an atomic may overtake
//      READs of other words before it: no caller may rely on the order of these two.
//  F2  A READ or WRITE is atomic per aligned 8-byte word only. Lines of one READ may be seen in
//      any order; a WRITE that a chain carries out before a READ is visible to all first
//      (store-load order included).
//  F3  Atomics are atomic with all other atomics and with the owner's CPU where capabilities()
//      says `coherent_atomics`.
//  F4  A chain's Completion is signalled once, from poll(), on the thread that posted it.
//  F5  Datagrams may be lost, doubled and reordered; never altered. Length <= max_datagram_bytes.
//  F6  A dead process's verbs stop before departed() names it (it is fenced).

namespace rdmacc {

class MappedMemory;

// Counts the chains (and RPC calls) that a coroutine waits for. Owned by the waiter, which stays
// put until `outstanding` is zero. `waiter` is the scheduler's; the fabric never reads it.
struct Completion {
  uint32_t outstanding = 0;
  bool failed = false;  // a peer could not be reached; effects of its chain are unknown
  void* waiter = nullptr;
  void (*on_done)(Completion*) = nullptr;  // called when outstanding becomes zero

  void finish_one() {
    CHECK(outstanding > 0);
    if (--outstanding == 0 && on_done != nullptr) on_done(this);
  }
};

struct FabricCapabilities {
  bool coherent_atomics = true;  // NIC and CPU atomics mix
  uint32_t max_datagram_bytes = 4096;
  uint32_t inline_bytes = 0;  // WRITEs up to this length need no registered buffer
};

// Between two looks of a loop that waits for another processor.
inline void pause_processor() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

// What time it is at most and at least, by the cluster's clock as node 0 counts it.
struct ClockBounds {
  uint64_t earliest_us, latest_us;
};

// What one worker thread holds of the fabric. Used by its thread alone.
class Endpoint {
 public:
  using DatagramHandler = std::function<void(WorkerId from, std::span<const std::byte> datagram)>;

  virtual ~Endpoint() = default;

  WorkerId worker() const { return worker_; }
  // Distinguishes successive owners of one worker id; never 0.
  uint32_t incarnation() const { return incarnation_; }

  // Rings the doorbell of `node` for `chain` (copied; the local buffers are not). poll() later
  // calls completion->finish_one(); the caller has counted the chain in `outstanding`.
  // Chains to one node are carried out, and completed, in the order of their ring().
  // completion == nullptr: not waited for (passive acknowledgement); its local buffers must then
  // stay valid until a later chain to the same node has completed.
  virtual void ring(NodeId node, std::span<const Verb> chain, Completion* completion) = 0;

  // How a round of verbs is best carried out here.
  enum class Port : uint8_t {
    kPosted,   // by chains, as ring() takes them
    kMapped,   // in place, on mapped() memory; ring() is not used then
    kOneByOne  // each verb a chain that is waited for: what kMapped does, with other workers
               // between any two accesses (the simulator)
  };
  virtual Port port() const { return Port::kPosted; }
  // kMapped: the regions. nullptr under the other ports.
  virtual MappedMemory* mapped() { return nullptr; }

  // Hands over a datagram; false when there is no room for it now (it counts as lost).
  virtual bool send(WorkerId to, std::span<const std::byte> datagram) = 0;
  // The same for a datagram that can wait: a receiver that sleeps in wait() need not be woken for
  // it, and reads it when that ends.
  virtual bool send_quietly(WorkerId to, std::span<const std::byte> datagram) {
    return send(to, datagram);
  }
  virtual void set_datagram_handler(DatagramHandler handler) = 0;

  // Completes finished chains and delivers datagrams; true if there was anything.
  virtual bool poll() = 0;
  // Whether poll() has nothing to carry out that was rung here; false where that is not known.
  virtual bool all_carried_out() const { return false; }
  // Looks whether poll() would find anything, until it does or `deadline_us` has come; returns
  // early at will. What a worker does before it sleeps, so it costs a few instructions a look.
  virtual void spin(uint64_t) { pause_processor(); }
  // Sleeps until something arrives, wake() is called or `deadline_us` has come (bounded by the
  // fabric as well). Returns early at will.
  virtual void wait(uint64_t deadline_us) = 0;
  // Ends a wait() under way, or the next one. The only member that other threads and signal
  // handlers may call.
  virtual void wake() {}

  // Microseconds since the cluster's epoch; one clock per host, never steps back.
  virtual uint64_t now_us() = 0;
  // For durations only.
  virtual uint64_t now_ns() = 0;
  // Between which two times the cluster's clock is, however far this host's is off. What the clocks
  // of one host differ by is a matter of nanoseconds (rdma/base/host_clock.h).
  virtual ClockBounds clock_bounds() { return bounds_around(now_us(), 1); }
  virtual Random& random() = 0;

  // Registered memory for verbs' local buffers: `bytes` of zeroed, 64-byte aligned memory that
  // lives as long as the endpoint. Fails with kNoSpace.
  virtual Result<std::byte*> allocate_registered(size_t bytes) = 0;

  // The owner's direct view of its own region (nodes only; nullptr for a coordinator).
  virtual std::byte* local_region() = 0;
  // Backs [offset, offset + bytes) of the own region with memory; kNoSpace when there is none.
  // Anything outside what was backed must not be touched.
  virtual Status back_region(uint64_t offset, uint64_t bytes) = 0;
  // A hint: back_region() will be asked for this next. A fabric may do its work meanwhile.
  virtual void expect_backing(uint64_t /*offset*/, uint64_t /*bytes*/) {}

  // Incarnation of the live owner of `worker`; 0 when it is dead or unclaimed. Cheap.
  virtual uint32_t incarnation_of(WorkerId worker) = 0;
  // Others have ended what they did with this worker: nothing of it takes effect any more, and
  // nothing answers it. It does not come back.
  bool taken_for_dead() { return incarnation_of(worker_) != incarnation_; }

 protected:
  // now_us() has cut off a part of a microsecond.
  static ClockBounds bounds_around(uint64_t now_us, uint64_t error_us) {
    return {now_us - std::min(now_us, error_us), now_us + error_us + 1};
  }

  WorkerId worker_ = kNoWorker;
  uint32_t incarnation_ = 0;
};

struct Topology {
  NodeId nodes = 2;
  uint16_t threads_per_node = 1;
  WorkerId workers_max = 64;           // node threads included
  uint64_t region_bytes = 1ull << 30;  // of each node, reserved whole

  WorkerId node_workers() const { return static_cast<WorkerId>(nodes * threads_per_node); }
  bool is_node_worker(WorkerId w) const { return w < node_workers(); }
  WorkerId worker_of(NodeId node, uint16_t thread = 0) const {
    return static_cast<WorkerId>(node * threads_per_node + thread % threads_per_node);
  }
};

// One process's membership in a cluster. Thread-safe but for the endpoints it hands out.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual const Topology& topology() const = 0;
  virtual const FabricCapabilities& capabilities() const = 0;

  // Claims a free worker id for a coordinator; kNoWorkerSlot when none is free.
  virtual Result<std::unique_ptr<Endpoint>> join() = 0;
  // The endpoint of a thread of node `node`, whose region this process owns.
  virtual Result<std::unique_ptr<Endpoint>> join_as_node(NodeId node, uint16_t thread) = 0;

  // Workers whose owner died without leaving (an Endpoint's destructor leaves) and that were
  // not released yet; node threads are never listed. Node 0 resolves them, then releases.
  virtual std::vector<WorkerId> departed() = 0;
  virtual void release(WorkerId worker) = 0;
};

}  // namespace rdmacc
