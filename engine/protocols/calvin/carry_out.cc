#include "engine/protocols/calvin/carry_out.h"

#include <algorithm>
#include <deque>

namespace rdmacc {
namespace {

constexpr uint64_t kAgainPauseUs = 500;
// That go out in one go: bounds their registered memory.
constexpr size_t kParcelsMax = 64;

enum class What : uint8_t { kBatch, kForward, kProgress, kCount };

// Where a delivery of `from` goes, in the area of the node that receives it.
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

// A delivery to one node.
struct Parcel {
  Delivery delivery;
  std::span<const std::byte> block;
  NodeId to;
};

// The tag goes last: chains keep their order, so that a node that sees it sees the block. Until
// then the place has an older tag, which is no longer wanted.
Status write_to(OrderLink& link, std::span<const Parcel> parcels) {
  VerbArena arena(link.worker.pool());
  DoorbellBatch batch(link.worker.scheduler(), link.worker.counters());
  const std::byte* copy = nullptr;
  const std::byte* copy_of = nullptr;
  for (const Parcel& parcel : parcels) {
    CHECK(parcel.to < link.topology.nodes && parcel.block.size() >= 8);
    CHECK(parcel.block.size() <= parcel.delivery.bytes_max() && parcel.block.size() % 8 == 0);
    if (copy_of != parcel.block.data()) {
      std::byte* fresh = arena.allocate(parcel.block.size());
      if (fresh == nullptr) return out_of_registered_memory();
      memcpy(fresh, parcel.block.data(), parcel.block.size());
      copy = fresh;
      copy_of = parcel.block.data();
    }
    const GlobalAddress place =
        GlobalAddress::make(parcel.to, parcel.delivery.place(link.area.layout()));
    if (parcel.block.size() > 8) batch.write(place.plus(8), copy + 8, parcel.block.size() - 8);
    batch.write(place, copy, 8);
  }
  return batch.execute();
}

Rpc::Call call_to(const OrderLink& link, const Parcel& parcel) {
  Rpc::Call call;
  call.to = link.topology.worker_of(parcel.to);
  call.method = kMethodOrderDeliver;
  MessageWriter out(call.request);
  out.u8(static_cast<uint8_t>(parcel.delivery.what));
  out.u64(parcel.delivery.tag);
  out.bytes(
      std::string_view(reinterpret_cast<const char*>(parcel.block.data()), parcel.block.size()));
  return call;
}

// Parcels with the same block lie next to each other.
void deliver(OrderLink& link, Primitive primitive, std::vector<Parcel> parcels) {
  while (!parcels.empty()) {
    std::vector<Parcel> left;
    if (primitive == Primitive::kOneSided) {
      const size_t count = std::min(parcels.size(), kParcelsMax);
      const bool sent = write_to(link, std::span(parcels.data(), count)).ok();
      left.assign(parcels.begin() + (sent ? static_cast<ptrdiff_t>(count) : 0), parcels.end());
      if (sent) {
        parcels = std::move(left);
        continue;
      }
    } else {
      std::vector<Rpc::Call> calls;
      for (const Parcel& parcel : parcels) calls.push_back(call_to(link, parcel));
      link.worker.rpc().call_all(calls, link.worker.counters());
      for (size_t i = 0; i < calls.size(); i++) {
        if (!calls[i].status.ok()) left.push_back(parcels[i]);
      }
    }
    if (!left.empty()) link.worker.scheduler().sleep_for(kAgainPauseUs);
    parcels = std::move(left);
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
  // A request to an earlier process of this node, given up by its sender, may come late: what is
  // there already is never replaced by something older. Tags of one place rise.
  const uint64_t place = delivery.place(layout);
  if (link.area.region().load(place) < tag) link.area.store(place, block);
  return Status();
}

}  // namespace

void carry_out_broadcast(OrderLink& link, StagePlan plan, uint64_t epoch) {
  CHECK(epoch != 0);  // 0 is the tag of what was never written
  const Delivery delivery{What::kBatch, link.node, epoch};
  const auto block = link.area.image(delivery.place(link.area.layout()), epoch, kBatchBytes);
  std::vector<Parcel> parcels;
  for (NodeId node = 0; node < link.topology.nodes; node++) {
    if (node != link.node) parcels.push_back({delivery, block, node});
  }
  deliver(link, plan.of(Stage::kBroadcast), std::move(parcels));
}

void carry_out_forward(OrderLink& link, std::span<const OrderForward> forwards) {
  std::deque<std::vector<std::byte>> blocks;
  std::vector<Parcel> one_sided, by_rpc;
  for (const OrderForward& forward : forwards) {
    const uint64_t tag = forward.position.word();
    const Delivery delivery{What::kForward, link.node, tag};
    blocks.push_back(link.area.image(delivery.place(link.area.layout()), tag, kForwardBytes));
    auto& parcels = forward.plan.of(Stage::kForward) == Primitive::kOneSided ? one_sided : by_rpc;
    for (const NodeId to : forward.to) parcels.push_back({delivery, blocks.back(), to});
  }
  deliver(link, Primitive::kOneSided, std::move(one_sided));
  deliver(link, Primitive::kRpc, std::move(by_rpc));
}

void carry_out_progress(OrderLink& link, StagePlan plan, NodeId to) {
  CHECK(to != link.node && to < link.topology.nodes);
  const uint64_t word = link.area.progress().word();
  const auto bytes = std::as_bytes(std::span(&word, 1));
  deliver(link, plan.of(Stage::kForward),
          {Parcel{Delivery{What::kProgress, link.node, word}, bytes, to}});
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
