#include "tests/explore/explored_world.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace rdmacc {
namespace {

constexpr uint64_t kEventsMax = 1'000'000;  // of preparing
constexpr uint32_t kStacks = 8;             // coroutines of a worker at a time
constexpr uint64_t kNeverUs = 1'000'000'000'000;
constexpr uint32_t kTableNumber = 21;

SimOptions fabric_options(const ExploreSetup& setup) {
  SimOptions options;
  options.stall_percent = 0;
  options.cpu_reads = setup.words;
  return options;
}

Topology topology_of(const ExploreProgram& program, const ExploreSetup& setup) {
  Topology topology;
  topology.nodes = static_cast<NodeId>(setup.nodes);
  topology.threads_per_node = 1;
  topology.workers_max =
      static_cast<WorkerId>(topology.node_workers() + program.transactions.size() + 1);
  topology.region_bytes = 16ull << 20;
  return topology;
}

std::string key_of(uint64_t number) { return "k" + std::to_string(1000 + number); }

// The mapping that an address lies in, as the kernel tells it: guard pages end it.
void track_mapping(const void* inside) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<uintptr_t>(inside);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2 || at < begin || at >= end) {
      continue;
    }
    WorldMemory::instance().track(reinterpret_cast<void*>(begin), end - begin);
    return;
  }
  CHECK(!"an address that is not mapped");
}

}  // namespace

ExploredWorld::ExploredWorld(const ExploreProgram& program, const ExploreSetup& setup,
                             const ExploreMutation& mutation)
    : program_(program),
      setup_(setup),
      mutation_(mutation),
      topology_(topology_of(program, setup)),
      layout_(topology_) {
  txn_.protocol = setup.protocol;
  txn_.plan = setup.plan;
  txn_.lock_mode = setup.lock_mode;
}

ExploredWorld::~ExploredWorld() {
  WorldMemory& memory = WorldMemory::instance();
  memory.thaw();
  for (const std::unique_ptr<Client>& client : clients_) {
    fabric_->attach(client->coordinator->worker().id(), nullptr);
  }
  clients_.clear();
  if (keeper_ != nullptr) fabric_->attach(keeper_->coordinator->worker().id(), nullptr);
  keeper_.reset();
  for (const std::unique_ptr<NodeThread>& node : nodes_) {
    fabric_->attach(node->worker().id(), nullptr);
  }
  nodes_.clear();
  fabric_.reset();
  delete history_;
  delete seen_rows_;
  memory.drop();
}

Status ExploredWorld::build(SimChooser& chooser) {
  WorldMemory& memory = WorldMemory::instance();
  {
    const WorldMemory::Inside inside;
    RDMACC_RETURN_IF_ERROR(open());
    RDMACC_RETURN_IF_ERROR(load());
    RDMACC_RETURN_IF_ERROR(start_clients());
  }
  name_places();
  const WorldMemory::Inside inside;
  fabric_->set_rewriter(mutation_.rewriter);
  fabric_->set_chooser(&chooser);
  // Each transaction goes on from the time of its ctts; the checking transaction comes after all.
  for (const std::unique_ptr<Client>& client : clients_) {
    fabric_->set_clock_us(client->coordinator->worker().id(), client->arrived_us);
  }
  fabric_->set_clock_us(keeper_->coordinator->worker().id(), fabric_->now_ns() / 1000 + 1'000'000);
  const WorldMemory::Outside outside;
  for (std::byte* region : regions_) memory.track(region, topology_.region_bytes);
  memory.take_snapshot();
  return Status();
}

Status ExploredWorld::open() {
  fabric_ = SimFabric::create(topology_, fabric_options(setup_));
  history_ = new HistoryMemory;
  seen_rows_ = new std::vector<SeenRow>;
  NodeOptions options;
  options.resolve_every_us = kNeverUs;
  options.maintain_every_us = kNeverUs;
  options.rules_of = mutation_.rules_of;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    Result<std::unique_ptr<NodeThread>> thread = NodeThread::open(*fabric_, node, 0, options);
    if (!thread.ok()) return thread.status();
    Worker& worker = (*thread)->worker();
    fabric_->attach(worker.id(), &worker.scheduler());
    regions_.push_back(worker.endpoint().local_region());
    nodes_.push_back(std::move(*thread));
    prepare_stacks(worker.scheduler());
  }
  keeper_ = open_client();
  return Status();
}

std::unique_ptr<ExploredWorld::Client> ExploredWorld::open_client() {
  Result<std::unique_ptr<Endpoint>> endpoint = fabric_->join();
  CHECK(endpoint.ok());
  EngineOptions options;
  options.location_cache_entries = 64;
  options.rules_of = mutation_.rules_of;
  auto client = std::make_unique<Client>();
  client->coordinator = std::make_unique<Coordinator>(std::move(*endpoint), topology_, options);
  client->coordinator->set_history(history_);
  Worker& worker = client->coordinator->worker();
  fabric_->attach(worker.id(), &worker.scheduler());
  prepare_stacks(worker.scheduler());
  return client;
}

// Makes a worker have as many coroutines as it will ever need, so that their stacks are known.
void ExploredWorld::prepare_stacks(Scheduler& scheduler) {
  std::vector<const void*> stacks;
  uint32_t ended = 0;
  for (uint32_t i = 0; i < kStacks; ++i) {
    CHECK(scheduler.spawn([&] {
      const volatile char here = 0;
      stacks.push_back(const_cast<const char*>(&here));
      scheduler.yield();
      ++ended;
    }));
  }
  CHECK(fabric_->run_until([&] { return ended == kStacks; }, kEventsMax));
  const WorldMemory::Outside outside;
  for (const void* stack : stacks) track_mapping(stack);
}

Status ExploredWorld::run_task(Client& client, const std::function<Status()>& task) {
  Status status;
  bool ended = false;
  Scheduler& scheduler = client.coordinator->worker().scheduler();
  CHECK(scheduler.spawn([&] {
    status = task();
    ended = true;
  }));
  if (fabric_->run_until([&] { return ended; }, kEventsMax)) return status;
  scheduler.unwind();  // the task refers to this frame
  return Status(Code::kTimeout, "a task hangs");
}

// x and z in one group; y in the same one, or on the other node.
void ExploredWorld::choose_keys() {
  const PartitionMap map(topology_.nodes, 0);
  const auto node_of = [&](const std::string& key) {
    return map.primary_of(hash_key(table_, key));
  };
  const auto group_of = [&](const std::string& key) {
    return group_bits_of(hash_key(table_, key), kInitialDepth);
  };
  uint64_t number = 0;
  for (; node_of(key_of(number)) != 0; ++number) {
  }
  x_ = key_of(number++);
  for (; node_of(key_of(number)) != 0 || group_of(key_of(number)) != group_of(x_); ++number) {
  }
  z_ = key_of(number++);
  const NodeId y_node = static_cast<NodeId>(topology_.nodes - 1);
  for (; node_of(key_of(number)) != y_node ||
         (y_node == 0 && group_of(key_of(number)) != group_of(x_));
       ++number) {
  }
  y_ = key_of(number);
}

Status ExploredWorld::load() {
  return run_task(*keeper_, [this] {
    Session session(*keeper_->coordinator);
    TableSpec spec;
    spec.relfilenode = kTableNumber;
    spec.record_size = setup_.wide_rows ? 96 : 24;
    spec.history = 3;
    Result<TableMeta> table = session.create_table(spec);
    if (!table.ok()) return table.status();
    table_ = table->id;
    choose_keys();
    RDMACC_RETURN_IF_ERROR(session.begin(txn_));
    RDMACC_RETURN_IF_ERROR(session.insert(table_, x_, row_of('a')));
    RDMACC_RETURN_IF_ERROR(session.insert(table_, y_, row_of('a')));
    RDMACC_RETURN_IF_ERROR(session.commit());
    RDMACC_RETURN_IF_ERROR(session.begin(txn_));
    std::string problem;
    RDMACC_RETURN_IF_ERROR(read_all(session, problem));
    return session.commit();
  });
}

// A worker that knows where the rows are has read them in an earlier transaction.
Status ExploredWorld::warm(Client& client) {
  return run_task(client, [this, &client] {
    Session session(*client.coordinator);
    RDMACC_RETURN_IF_ERROR(session.begin(txn_));
    RowView view;
    RDMACC_RETURN_IF_ERROR(session.get(table_, x_, view));
    RDMACC_RETURN_IF_ERROR(session.get(table_, y_, view));
    return session.commit();
  });
}

Status ExploredWorld::start_clients() {
  for (size_t i = 0; i < program_.transactions.size(); ++i) {
    clients_.push_back(open_client());
    if (!setup_.warm) continue;
    RDMACC_RETURN_IF_ERROR(warm(*clients_.back()));
  }
  for (size_t i = 0; i < clients_.size(); ++i) {
    const size_t index = setup_.younger_first ? clients_.size() - 1 - i : i;
    Client& client = *clients_[index];
    CHECK(client.coordinator->worker().scheduler().spawn(
        [this, index, &client] { run_transaction(static_cast<uint32_t>(index), client); }));
    if (!fabric_->run_until([&] { return client.arrived || client.ended; }, kEventsMax)) {
      return Status(Code::kTimeout, "a transaction cannot begin");
    }
    RDMACC_RETURN_IF_ERROR(client.status);
  }
  return Status();
}

WorkerId ExploredWorld::worker_of_client(uint32_t client) const {
  return clients_[client]->coordinator->worker().id();
}

uint64_t ExploredWorld::clock_us(WorkerId worker) const {
  if (is_node(worker)) return nodes_[worker]->worker().endpoint().now_us();
  for (const std::unique_ptr<Client>& client : clients_) {
    Worker& its = client->coordinator->worker();
    if (its.id() == worker) return its.endpoint().now_us();
  }
  return keeper_->coordinator->worker().endpoint().now_us();
}

// ---- Names

void ExploredWorld::name_places() {
  const PartitionMap map(topology_.nodes, 0);
  const auto load = [&](NodeId node, uint64_t offset) {
    uint64_t word;
    std::memcpy(&word, regions_[node] + offset, sizeof(word));
    return word;
  };
  const std::array<std::pair<const char*, const std::string*>, 3> keys = {
      {{"x", &x_}, {"y", &y_}, {"z", &z_}}};
  for (const auto& [name, key] : keys) {
    const uint64_t hash = hash_key(table_, *key);
    const NodeId node = map.primary_of(hash);
    const IndexRoot root{
        load(node, layout_.directory_entry(table_) + offsetof(DirectoryEntry, root))};
    const uint64_t group = load(node, root.offset() + 8 * group_bits_of(hash, root.depth()));
    const uint64_t bucket = bucket_offset(group, home_bucket_of(hash));
    for (uint32_t entry = 0; entry < kEntriesPerBucket; ++entry) {
      const uint64_t value = load(node, bucket + 8 * entry);
      if (value == 0 || entry_tag(value) != tag_of(hash)) continue;
      places_.push_back(
          {name, node, entry_offset(value), slot_bytes(setup_.wide_rows ? 96 : 24, /*history=*/3)});
    }
    places_.push_back({std::string("gap of ") + name, node, group, sizeof(Header)});
    places_.push_back({std::string("bucket of ") + name, node, bucket, sizeof(Bucket)});
  }
}

std::string ExploredWorld::name_of(NodeId node, uint64_t offset) const {
  for (const Place& place : places_) {
    if (place.node != node || offset < place.offset || offset >= place.offset + place.bytes) {
      continue;
    }
    const uint64_t at = offset - place.offset;
    if (place.name.starts_with("bucket")) return place.name + '[' + std::to_string(at / 8) + ']';
    static constexpr std::array<const char*, 8> kFields = {"hash",    "identity", "wts", "length",
                                                           "sundial", "lock",     "rts", "waiter"};
    if (at < sizeof(Header)) return place.name + '.' + kFields[at / 8];
    return place.name + ".record+" + std::to_string(at - sizeof(Header));
  }
  const std::string on = setup_.nodes > 1 ? "node " + std::to_string(node) + ' ' : "";
  if (offset < layout_.control) return on + "superblock";
  if (offset < layout_.directory) return on + "gate+" + std::to_string(offset - layout_.control);
  if (offset < layout_.log_rings) return on + "directory";
  if (offset < layout_.page_table) return on + "log+" + std::to_string(offset - layout_.log_rings);
  return on + "pages+" + std::to_string(offset - layout_.pages);
}

}  // namespace rdmacc
