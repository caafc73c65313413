#include "engine/node/node.h"

namespace rdmacc {
namespace {

constexpr uint64_t kServingLookUs = 1'000;

}  // namespace

Result<std::unique_ptr<Node>> Node::open(Fabric& fabric, NodeId node, const NodeOptions& options) {
  std::unique_ptr<Node> opened(new Node(fabric, node, options));
  Result<std::unique_ptr<NodeThread>> first = NodeThread::open(fabric, node, 0, options);
  if (!first.ok()) return first.status();
  opened->first_ = std::move(*first);
  return opened;
}

Node::~Node() = default;

Status Node::serve_thread(uint16_t thread, uint32_t spin_us) {
  Result<std::unique_ptr<NodeThread>> opened = NodeThread::open(fabric_, node_, thread, options_);
  if (!opened.ok()) {
    failed_.store(true);
    return opened.status();
  }
  (*opened)->worker().scheduler().run_until([this] { return stop_others_.load(); }, spin_us);
  return Status();
}

Status Node::run(const std::atomic<bool>& stop, uint32_t spin_us) {
  CHECK(!stop_others_.load());  // once
  const uint16_t threads = fabric_.topology().threads_per_node;
  std::vector<Status> ended(threads);
  std::vector<std::thread> others;
  for (uint16_t t = 1; t < threads; ++t) {
    others.emplace_back([this, t, spin_us, &ended] { ended[t] = serve_thread(t, spin_us); });
  }
  first_->worker().scheduler().run_until(
      [&] { return stop.load() || failed_.load() || evicted() || first_->failed(); }, spin_us);
  stop_others_.store(true);
  for (std::thread& other : others) other.join();
  for (const Status& status : ended) RDMACC_RETURN_IF_ERROR(status);
  RDMACC_RETURN_IF_ERROR(first_->failure());
  if (!evicted()) return Status();
  return Status(Code::kUnavailable, "the other members took this node for dead");
}

void Node::when_serving(std::function<void()> then) {
  Scheduler& scheduler = first_->worker().scheduler();
  const bool spawned = scheduler.spawn([this, &scheduler, then = std::move(then)] {
    while (!first_->serving()) scheduler.sleep_for(kServingLookUs);
    then();
  });
  CHECK(spawned);
}

bool Node::evicted() const { return first_->worker().endpoint().taken_for_dead(); }

}  // namespace rdmacc
