// What a participant gives back when it cannot apply a request, and what it needs before it can.
#include "engine/protocols/calvin/local_part.h"

#include <gtest/gtest.h>

#include "engine/protocols/protocols.h"
#include "tests/unit/calvin/order_cluster.h"

namespace rdmacc {
namespace {

constexpr uint64_t kOthersCtts = 0x7'0009;

// Registered memory of a node that has none left for now; nothing else is asked of it.
class StarvedEndpoint : public Endpoint {
 public:
  StarvedEndpoint(Endpoint& with_memory, const bool& starved)
      : with_memory_(with_memory), starved_(starved) {}

  Result<std::byte*> allocate_registered(size_t bytes) override {
    if (starved_) return out_of_registered_memory();
    return with_memory_.allocate_registered(bytes);
  }
  void ring(NodeId, std::span<const Verb>, Completion*) override { CHECK(false); }
  bool send(WorkerId, std::span<const std::byte>) override { CHECK(false); }
  void set_datagram_handler(DatagramHandler) override { CHECK(false); }
  bool poll() override { CHECK(false); }
  void wait(uint64_t) override { CHECK(false); }
  uint64_t now_us() override { return with_memory_.now_us(); }
  uint64_t now_ns() override { return with_memory_.now_ns(); }
  Random& random() override { return with_memory_.random(); }
  std::byte* local_region() override { return with_memory_.local_region(); }
  Status back_region(uint64_t, uint64_t) override { CHECK(false); }
  uint32_t incarnation_of(WorkerId worker) override { return with_memory_.incarnation_of(worker); }

 private:
  Endpoint& with_memory_;
  const bool& starved_;
};

class LocalPartTest : public ::testing::Test {
 protected:
  LocalPartTest() : cluster_(1, 1), coordinator_(cluster_.add_coordinator()) {
    cluster_.create_table(coordinator_);
    EXPECT_TRUE(cluster_.run(coordinator_, [this] {
      for (const std::string& key : {"a", "b"}) {
        OrderedOutcome outcome;
        bool unknown = false;
        EXPECT_TRUE(cluster_
                        .submit(coordinator_,
                                cluster_.request(OrderCluster::kPut, {key}, {key}, "row", {}),
                                outcome, unknown)
                        .ok());
      }
    }));
  }

  // The row's header, found by its hash.
  Header& header(const std::string& key) {
    std::byte* region = cluster_.node_worker(0).endpoint().local_region();
    const uint64_t hash = hash_key(cluster_.table(), key);
    for (uint64_t at = RegionLayout(cluster_.topology()).pages;; at += sizeof(Header)) {
      CHECK(at < cluster_.topology().region_bytes);
      auto* header = reinterpret_cast<Header*>(region + at);
      if (header->key_hash == hash && header->table == cluster_.table() &&
          (header->flags & kFlagLive) != 0) {
        return *header;
      }
    }
  }
  void on_node(const std::function<void()>& task) {
    bool done = false;
    CHECK(cluster_.node_worker(0).scheduler().spawn([&] {
      task();
      done = true;
    }));
    ASSERT_TRUE(cluster_.run_until([&] { return done; }));
  }

  OrderCluster cluster_;
  Coordinator& coordinator_;
};

TEST_F(LocalPartTest, WaitsForRegisteredMemoryToUnlock) {
  Worker& worker = cluster_.node_worker(0);
  const OrderArea area = cluster_.area(0);
  EngineContext engine(worker, cluster_.topology(), 16);
  bool starved = false;
  StarvedEndpoint endpoint(worker.endpoint(), starved);
  RegisteredPool pool(endpoint);
  VerbArena arena(pool);
  VerbCounters counters;
  StageContext stage{engine, kCalvinRules, TxnStamps{header("a").wts + (1ull << 30)},
                     arena,  counters,     counters,
                     nullptr};
  OrderedRequest request;
  for (const char* key : {"a", "b"}) request.writes.push_back({cluster_.table(), key, false, "x"});
  on_node([&] {
    LocalPart part(stage, area, 0, request);
    LocalVerdict verdict;
    ASSERT_TRUE(part.look(verdict).ok());
    ASSERT_TRUE(part.make_room(request.writes).ok());
    header("b").lock = kOthersCtts;  // by a stale address
    ASSERT_FALSE(part.apply().ok());
    ASSERT_EQ(header("a").lock, stage.stamps.ctts);
    while (arena.allocate(64) != nullptr) starved = true;  // what is left of the block
    ASSERT_TRUE(worker.scheduler().spawn([&] {
      worker.scheduler().sleep_for(5'000);
      starved = false;
    }));
    part.give_back();
    EXPECT_EQ(header("a").lock, 0u);
    EXPECT_EQ(header("b").lock, kOthersCtts);
  });
  header("b").lock = 0;
}

// An insert that is decided finds its place without asking for memory, whatever was judged before
// it and is installed first.
TEST_F(LocalPartTest, HasEntriesForAllThatIsJudgedBeforeItIsDecided) {
  std::vector<std::string> keys;  // of one home bucket, which no other key is in
  const auto home_of = [&](const std::string& key) {
    const uint64_t hash = hash_key(cluster_.table(), key);
    return std::pair(group_bits_of(hash, kInitialDepth), home_bucket_of(hash));
  };
  for (int i = 0; keys.size() <= kEntriesPerBucket; i++) {
    const std::string key = "k" + std::to_string(i);
    const bool apart = home_of(key) != home_of("a") && home_of(key) != home_of("b");
    if (apart && (keys.empty() || home_of(key) == home_of(keys[0]))) keys.push_back(key);
  }
  Worker& worker = cluster_.node_worker(0);
  const OrderArea area = cluster_.area(0);
  EngineContext engine(worker, cluster_.topology(), 16);
  VerbArena arena(worker.pool());
  VerbCounters counters, allocations;
  const uint64_t now = header("a").wts + (1ull << 30);
  StageContext first{engine, kCalvinRules, TxnStamps{now}, arena, counters, allocations, nullptr};
  StageContext then{engine,      kCalvinRules, TxnStamps{now + (1 << 16)}, arena, counters,
                    allocations, nullptr};
  const auto insert_of = [&](size_t begin, size_t end) {
    OrderedRequest request;
    for (size_t i = begin; i < end; i++) {
      request.writes.push_back({cluster_.table(), keys[i], false, "x"});
    }
    return request;
  };
  const OrderedRequest seven = insert_of(0, kEntriesPerBucket);
  const OrderedRequest one = insert_of(kEntriesPerBucket, keys.size());
  on_node([&] {
    LocalPart before(first, area, 0, seven), after(then, area, 0, one);
    EntriesWanted wanted;
    LocalVerdict verdict;
    ASSERT_TRUE(before.look(verdict).ok() && after.look(verdict).ok());
    ASSERT_TRUE(before.make_room(seven.writes).ok() && after.make_room(one.writes).ok());
    const uint64_t asked = allocations.messages;
    ASSERT_TRUE(before.make_entry_room(wanted).ok());
    EXPECT_EQ(allocations.messages, asked);  // they fit
    ASSERT_TRUE(after.make_entry_room(wanted).ok());
    EXPECT_EQ(allocations.messages, asked + 1);
    ASSERT_TRUE(before.apply().ok());
    ASSERT_TRUE(after.apply().ok());
    EXPECT_EQ(allocations.messages, asked + 1);
  });
  for (const std::string& key : keys) EXPECT_EQ(header(key).lock, 0u);
}

}  // namespace
}  // namespace rdmacc
