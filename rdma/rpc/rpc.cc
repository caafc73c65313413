#include "rdma/rpc/rpc.h"

#include "rdma/rpc/rpc_client.h"
#include "rdma/rpc/rpc_outbox.h"
#include "rdma/rpc/rpc_server.h"
#include "rdma/rpc/rpc_wire.h"

namespace rdmacc {
namespace {

// How soon to try again when a receiver's ring was full: it drains one in about this time.
constexpr uint64_t kPaceUs = 30;

}  // namespace

struct Rpc::Impl : RpcMessageSource {
  Impl(Scheduler& its_scheduler, Options options)
      : scheduler(its_scheduler),
        endpoint(its_scheduler.endpoint()),
        payload_bytes(fragment_payload_bytes(options.datagram_bytes)),
        outbox(its_scheduler, *this, options.datagram_bytes),
        client(its_scheduler, outbox, options, payload_bytes, alive),
        server(its_scheduler, outbox, payload_bytes) {}

  bool view(WorkerId to, const RpcOutMessage& message, RpcMessageView* view) override {
    const bool callers = message.kind == RpcKind::kRequest || message.kind == RpcKind::kCancel;
    return callers ? client.view(to, message, view) : server.view(to, message, view);
  }

  void on_datagram(WorkerId from, std::span<const std::byte> datagram);
  void on_fragment(WorkerId from, const RpcDatagramHeader& header,
                   const RpcFragmentHeader& fragment, std::span<const std::byte> payload);
  void after_step();

  Scheduler& scheduler;
  Endpoint& endpoint;
  const uint32_t payload_bytes;
  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  RpcOutbox outbox;
  RpcClient client;
  RpcServer server;
  uint64_t malformed = 0;
  uint64_t refused = 0;
  bool pacing = false;  // a timer is set because a ring was full
};

void Rpc::Impl::on_datagram(WorkerId from, std::span<const std::byte> datagram) {
  RpcFragmentHeader fragment;
  std::span<const std::byte> payload;
  // All or nothing: a datagram that ends in garbage is not believed at its start either.
  RpcDatagramReader check(datagram, payload_bytes);
  const bool any = check.next(&fragment, &payload);
  const bool single = any && check.at_end();
  RpcFragmentHeader other;
  std::span<const std::byte> others;
  while (check.next(&other, &others)) continue;
  if (check.malformed()) {
    ++malformed;
    return;
  }
  const RpcDatagramHeader header = check.header();
  if (header.to_incarnation != endpoint.incarnation()) {
    ++refused;
    return;
  }
  if (single) return on_fragment(from, header, fragment, payload);
  RpcDatagramReader reader(datagram, payload_bytes);
  while (reader.next(&fragment, &payload)) on_fragment(from, header, fragment, payload);
}

void Rpc::Impl::on_fragment(WorkerId from, const RpcDatagramHeader& header,
                            const RpcFragmentHeader& fragment, std::span<const std::byte> payload) {
  if (fragment.kind == RpcKind::kCancel) {
    server.on_cancel(from, header, fragment);
  } else if (fragment.kind != RpcKind::kRequest) {
    client.on_reply(from, header, fragment, payload);
  } else if (!server.on_request(from, header, fragment, payload)) {
    ++malformed;
  }
}

void Rpc::Impl::after_step() {
  server.run_waiting();
  const bool all_sent = outbox.flush();
  if (outbox.has_loopback()) {
    for (const Bytes& datagram : outbox.take_loopback()) {
      on_datagram(endpoint.worker(), datagram);
      endpoint.wake();  // what that caused is for the next step
    }
  }
  if (all_sent || pacing) return;
  pacing = true;
  scheduler.call_at(endpoint.now_us() + kPaceUs, [this, still_alive = alive] {
    if (*still_alive) pacing = false;
  });
}

Rpc::Rpc(Scheduler& scheduler) : Rpc(scheduler, Options()) {}

Rpc::Rpc(Scheduler& scheduler, Options options)
    : impl_(std::make_unique<Impl>(scheduler, options)) {
  Impl* impl = impl_.get();
  CHECK(options.datagram_bytes >= 128 && options.datagram_bytes <= UINT16_MAX);
  impl->endpoint.set_datagram_handler([impl](WorkerId from, std::span<const std::byte> datagram) {
    impl->on_datagram(from, datagram);
  });
  scheduler.add_after_step([impl, alive = impl->alive] {
    if (*alive) impl->after_step();
  });
}

Rpc::~Rpc() {
  *impl_->alive = false;
  impl_->endpoint.set_datagram_handler(nullptr);
}

void Rpc::handle(MethodId method, Handler handler) {
  impl_->server.handle(method, std::move(handler));
}

const bool* Rpc::call_cancelled() const { return impl_->server.call_cancelled(); }

void Rpc::post(Call& call, Completion& completion) { impl_->client.post(call, completion); }

void Rpc::call_all(std::span<Call> calls, VerbCounters& counters) {
  if (calls.empty()) return;
  CHECK(impl_->scheduler.in_coroutine());
  Completion completion;
  // Counted before the first post: a call may end at once.
  completion.outstanding = static_cast<uint32_t>(calls.size());
  for (Call& call : calls) impl_->client.post(call, completion);
  counters.messages += calls.size();
  ++counters.round_trips;
  impl_->scheduler.await(completion);
}

Status Rpc::call_one(Call& call, VerbCounters& counters) {
  call_all(std::span<Call>(&call, 1), counters);
  return call.status;
}

uint64_t Rpc::retransmissions() const { return impl_->client.retransmissions(); }
uint64_t Rpc::malformed_datagrams() const { return impl_->malformed; }
uint64_t Rpc::refused_datagrams() const { return impl_->refused; }

}  // namespace rdmacc
