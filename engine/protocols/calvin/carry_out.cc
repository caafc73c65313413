#include "engine/protocols/calvin/carry_out.h"

namespace rdmacc {
namespace {

constexpr uint64_t kAgainPauseUs = 500;

enum class What : uint8_t { kBatch, kForward, kProgress, kCount };

// Where a delivery of `from` goes, in the area of whoever receives it.
struct Delivery {
  What what;
  NodeId from;
  uint64_t tag;  // epoch, or the word of a position

  uint64_t place(const RegionLayout& layout) const {
    if (what == What::kBatch) return layout.order_batch(from, tag);
    if (what == What::kProgress) return layout.order_progress(from);
    return layout.order_forward(from, Position::of(tag).index);
  }
  uint64_t bytes_max() const {
    if (what == What::kBatch) return kBatchBytes;
    return what == What::kProgress ? 8 : kForwardBytes;
  }
};

// The tag goes last: chains keep their order, so that whoever sees it sees the block. Until then
// the place has an older tag, which nobody wants any more.
Status write_to(OrderLink& link, const Delivery& delivery, std::span<const std::byte> block,
                std::span<const NodeId> to) {
  VerbArena arena(link.worker.pool());
  std::byte* copy = arena.allocate(block.size());
  if (copy == nullptr) return out_of_registered_memory();
  memcpy(copy, block.data(), block.size());
  DoorbellBatch batch(link.worker.scheduler(), link.worker.counters());
  for (const NodeId node : to) {
    const GlobalAddress place = GlobalAddress::make(node, delivery.place(link.area.layout()));
    if (block.size() > 8) batch.write(place.plus(8), copy + 8, block.size() - 8);
    batch.write(place, copy, 8);
  }
  return batch.execute();
}

Rpc::Call call_to(const OrderLink& link, const Delivery& delivery, std::span<const std::byte> block,
                  NodeId to) {
  Rpc::Call call;
  call.to = link.topology.worker_of(to);
  call.method = kMethodOrderDeliver;
  MessageWriter out(call.request);
  out.u8(static_cast<uint8_t>(delivery.what));
  out.u64(delivery.tag);
  out.bytes(std::string_view(reinterpret_cast<const char*>(block.data()), block.size()));
  return call;
}

void deliver(OrderLink& link, Primitive primitive, const Delivery& delivery,
             std::span<const std::byte> block, std::vector<NodeId> to) {
  while (!to.empty()) {
    std::vector<NodeId> left;
    if (primitive == Primitive::kOneSided) {
      if (!write_to(link, delivery, block, to).ok()) left = to;
    } else {
      std::vector<Rpc::Call> calls;
      for (const NodeId node : to) calls.push_back(call_to(link, delivery, block, node));
      link.worker.rpc().call_all(calls, link.worker.counters());
      for (size_t i = 0; i < calls.size(); i++) {
        if (!calls[i].status.ok()) left.push_back(to[i]);
      }
    }
    if (!left.empty()) link.worker.scheduler().sleep_for(kAgainPauseUs);
    to = std::move(left);
  }
}

Status store(OrderLink& link, WorkerId from, std::span<const std::byte> request) {
  MessageReader in(request);
  const uint8_t what = in.u8();
  const uint64_t tag = in.u64();
  const std::string_view bytes = in.bytes();
  const bool from_node =
      link.topology.is_node_worker(from) && from % link.topology.threads_per_node == 0;
  if (!in.at_end() || !from_node || what >= static_cast<uint8_t>(What::kCount)) {
    return Status(Code::kCorrupt, "a delivery of the order does not parse");
  }
  const Delivery delivery{static_cast<What>(what),
                          static_cast<NodeId>(from / link.topology.threads_per_node), tag};
  const auto block = std::as_bytes(std::span(bytes.data(), bytes.size()));
  if (delivery.what == What::kProgress) {
    link.area.raise_progress_of(delivery.from, tag);
    return Status();
  }
  const RegionLayout& layout = link.area.layout();
  const bool in_epoch =
      delivery.what == What::kBatch || Position::of(tag).index < layout.orders_per_epoch();
  if (!in_epoch || block.size() > delivery.bytes_max() || !OrderArea::sound(block, tag)) {
    return Status(Code::kCorrupt, "a delivery of the order is no block");
  }
  // A request that its sender gave up with an earlier process of ours may come late: what is
  // there already is never replaced by something older.
  if (!link.area.holds(delivery.place(layout), tag)) {
    link.area.store(delivery.place(layout), block);
  }
  return Status();
}

}  // namespace

void carry_out_broadcast(OrderLink& link, StagePlan plan, uint64_t epoch) {
  std::vector<NodeId> others;
  for (NodeId node = 0; node < link.topology.nodes; node++) {
    if (node != link.node) others.push_back(node);
  }
  const Delivery delivery{What::kBatch, link.node, epoch};
  const auto block = link.area.image(delivery.place(link.area.layout()), epoch, kBatchBytes);
  deliver(link, plan.of(Stage::kBroadcast), delivery, block, std::move(others));
}

void carry_out_forward(OrderLink& link, StagePlan plan, Position position,
                       std::span<const NodeId> to) {
  const Delivery delivery{What::kForward, link.node, position.word()};
  const auto block =
      link.area.image(delivery.place(link.area.layout()), position.word(), kForwardBytes);
  deliver(link, plan.of(Stage::kForward), delivery, block,
          std::vector<NodeId>(to.begin(), to.end()));
}

void carry_out_progress(OrderLink& link, StagePlan plan, NodeId to) {
  const uint64_t word = link.area.progress().word();
  const auto bytes = std::as_bytes(std::span(&word, 1));
  deliver(link, plan.of(Stage::kForward), Delivery{What::kProgress, link.node, word}, bytes, {to});
}

void serve_deliveries(OrderLink& link, std::function<void()> arrived) {
  link.worker.rpc().handle(kMethodOrderDeliver,
                           [&link, arrived = std::move(arrived)](
                               WorkerId from, std::span<const std::byte> request, Rpc::Bytes&) {
                             RDMACC_RETURN_IF_ERROR(store(link, from, request));
                             arrived();
                             return Status();
                           });
}

}  // namespace rdmacc
