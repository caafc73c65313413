// Any bytes as datagrams for an Rpc that serves calls and has some of its own under way: it may
// drop them, and nothing else. An input is a row of [from 1][length 2][datagram].
#include <array>

#include "rdma/rpc/rpc_wire.h"
#include "rdma/rpc/worker.h"
#include "tests/fuzz/heap_endpoint.h"

namespace rdmacc {
namespace {

constexpr WorkerId kWorkers = 4;
constexpr MethodId kEcho = 1;
constexpr int kSteps = 64;

// Nine of ten inputs would end at the magic number and the incarnations; half of them need not.
void make_plausible(std::vector<std::byte>& datagram) {
  if (datagram.size() < sizeof(RpcDatagramHeader)) return;
  const RpcDatagramHeader header{kRpcMagic, 1, 1, 0};
  std::memcpy(datagram.data(), &header, sizeof(header));
}

void deliver(std::span<const std::byte> input) {
  auto made = std::make_unique<HeapEndpoint>();
  HeapEndpoint& endpoint = *made;
  std::array<Rpc::Call, kWorkers> calls;
  Completion answered;
  Worker worker(std::move(made));
  worker.rpc().handle(kEcho, [](WorkerId, std::span<const std::byte> request, Rpc::Bytes& reply) {
    reply.assign(request.begin(), request.end());
    return Status();
  });
  for (WorkerId to = 0; to < kWorkers; ++to) {
    calls[to].to = to;
    calls[to].method = kEcho;
    calls[to].request.resize(100);
    ++answered.outstanding;
    worker.rpc().post(calls[to], answered);
  }
  while (input.size() >= 3) {
    const auto from = static_cast<uint8_t>(input[0]);
    const size_t wanted = static_cast<size_t>(input[1]) | static_cast<size_t>(input[2]) << 8;
    input = input.subspan(3);
    const auto bytes = input.first(std::min({wanted, input.size(), size_t{4096}}));
    std::vector<std::byte> datagram(bytes.begin(), bytes.end());
    if (from >= 128) make_plausible(datagram);
    endpoint.arrive(static_cast<WorkerId>(from % kWorkers), datagram);
    input = input.subspan(bytes.size());
  }
  for (int i = 0; i < kSteps; ++i) {
    worker.scheduler().step();
    endpoint.pass_us(10'000);
  }
}

}  // namespace
}  // namespace rdmacc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rdmacc::deliver(std::as_bytes(std::span(data, size)));
  return 0;
}
