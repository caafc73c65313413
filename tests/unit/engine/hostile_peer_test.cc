// A member that sends anything: every request of the engine, recorded from sessions that mean it,
// comes again with bytes changed, cut off and added, and with nothing but noise. Nodes may refuse
// it or spoil the sender's own rows, and must go on serving: no crash, no hang, no read outside of
// their memory (the sanitizers look).
#include <gtest/gtest.h>

#include <set>

#include "engine/protocols/registry.h"
#include "rdma/rpc/rpc_wire.h"
#include "tests/fabric/forwarding_endpoint.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

struct Request {
  WorkerId to;
  MethodId method;
  Rpc::Bytes bytes;
};

// An endpoint that remembers the small requests that pass it.
class TappedEndpoint : public ForwardingEndpoint {
 public:
  TappedEndpoint(std::unique_ptr<Endpoint> inner, std::vector<Request>& requests)
      : ForwardingEndpoint(std::move(inner)), requests_(requests) {}
  bool send(WorkerId to, std::span<const std::byte> datagram) override {
    note(to, datagram);
    return ForwardingEndpoint::send(to, datagram);
  }

  bool recording = true;

 private:
  static constexpr size_t kRequestsMax = 4000;

  void note(WorkerId to, std::span<const std::byte> datagram) {
    RpcDatagramReader reader(datagram, fragment_payload_bytes(4096));
    RpcFragmentHeader fragment{};
    std::span<const std::byte> payload;
    while (reader.next(&fragment, &payload)) {
      if (fragment.kind != RpcKind::kRequest || fragment.bytes != fragment.total_bytes) continue;
      if (!recording || requests_.size() == kRequestsMax) return;
      requests_.push_back({to, fragment.method, {payload.begin(), payload.end()}});
    }
  }

  std::vector<Request>& requests_;
};

class HostilePeerTest : public testing::TestWithParam<uint64_t> {
 protected:
  HostilePeerTest() : engine_(GetParam(), 1), random_(GetParam()) {}

  TxnOptions options(Protocol protocol) const {
    return {.protocol = protocol, .plan = StagePlan::parse("rpc").value()};
  }

  // A transaction of every kind of access, tried until it commits; false: it never did.
  bool use(Session& session, TableId table, Protocol protocol, const std::string& key) {
    for (int attempt = 0; attempt < 30; ++attempt) {
      Status status = session.begin(options(protocol));
      RowView row;
      if (status.ok()) status = session.insert(table, key, std::string(40, 'r'));
      if (status.ok()) status = session.get(table, "absent", row);
      if (status.ok()) status = session.get(table, key, row);
      if (status.ok()) status = session.put(table, key, std::string(3000, 's'));
      if (status.ok() && attempt % 2 == 0) {
        auto cursor = session.scan(table);
        status = cursor.status();
        std::vector<RowView> batch;
        do {
          if (status.ok()) status = session.scan_next(**cursor, batch);
        } while (status.ok() && !batch.empty());
      }
      if (status.ok()) status = session.commit();
      if (status.ok()) return true;
      session.abort();
      session.scheduler().sleep_for(1000);
    }
    return false;
  }

  TableId make_table(Session& session, uint32_t relfilenode) {
    TableSpec spec;
    spec.relfilenode = relfilenode;
    spec.record_size = 64;
    auto made = session.create_table(spec);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? made->id : kNoTable;
  }

  // Requests as they should be, of all protocols. Their sender turns hostile later: a node
  // refuses those that are made in another worker's name.
  Coordinator& record() {
    TappedEndpoint* tap = nullptr;
    Coordinator& coordinator = engine_.add_coordinator([&](std::unique_ptr<Endpoint> endpoint) {
      auto tapped = std::make_unique<TappedEndpoint>(std::move(endpoint), recorded_);
      tap = tapped.get();
      return tapped;
    });
    engine_.run(coordinator, [&] {
      Session session(coordinator);
      const TableId table = make_table(session, 1);
      for (const Protocol protocol : available_protocols()) {
        for (int i = 0; i < 5; ++i) {
          const std::string key = std::string(protocol_name(protocol)) + std::to_string(i);
          EXPECT_TRUE(use(session, table, protocol, key)) << key;
        }
      }
      EXPECT_TRUE(session.node_statistics(0).ok());
      EXPECT_TRUE(session.locked_headers(0, 0).ok());
      EXPECT_TRUE(session.drop_table(make_table(session, 2)).ok());
    });
    tap->recording = false;
    return coordinator;
  }

  uint64_t strange_number() {
    constexpr uint64_t kNumbers[] = {0,
                                     1,
                                     7,
                                     8,
                                     63,
                                     64,
                                     0x7FFFFFFF,
                                     0xFFFFFFFF,
                                     1ull << 20,
                                     1ull << 47,
                                     (1ull << 48) - 8,
                                     1ull << 48,
                                     ~0ull,
                                     ~7ull};
    return kNumbers[random_.below(std::size(kNumbers))];
  }

  Rpc::Bytes spoiled(Rpc::Bytes bytes) {
    for (uint64_t edits = 1 + random_.below(3); edits > 0; --edits) {
      const uint64_t kind = random_.below(8);
      if (kind == 0) bytes.resize(random_.below(bytes.size() + 1));
      if (kind == 1) bytes.resize(bytes.size() + 1 + random_.below(64), std::byte{0x41});
      if (bytes.empty()) continue;
      const size_t at = random_.below(bytes.size());
      if (kind == 2 || kind == 3) {
        bytes[at] = static_cast<std::byte>(random_.below(256));
      } else if (kind == 4) {
        bytes[at] ^= static_cast<std::byte>(1u << random_.below(8));
      } else if (kind >= 5) {
        const uint64_t number = strange_number();
        std::memcpy(bytes.data() + at, &number, std::min(sizeof(number), bytes.size() - at));
      }
    }
    return bytes;
  }

  Request next_request() {
    Request request = recorded_[random_.below(recorded_.size())];
    if (random_.below(10) == 0) request.method = static_cast<MethodId>(random_.below(80));
    if (random_.below(20) == 0) {
      request.bytes.resize(random_.below(200));
      for (std::byte& byte : request.bytes) byte = static_cast<std::byte>(random_.below(256));
    } else {
      request.bytes = spoiled(std::move(request.bytes));
    }
    return request;
  }

  SimEngine engine_;
  Random random_;
  std::vector<Request> recorded_;
};

constexpr int kRounds = 60, kCallsPerRound = 16;

TEST_P(HostilePeerTest, NodesGoOnServing) {
  Coordinator& hostile = record();
  std::set<MethodId> methods;
  for (const Request& request : recorded_) methods.insert(request.method);
  ASSERT_GE(methods.size(), 6u) << "too little was recorded to be spoiled";

  int answered = 0, refused = 0;
  engine_.run(hostile, [&] {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Rpc::Call> calls(kCallsPerRound);
      for (Rpc::Call& call : calls) {
        Request request = next_request();
        call.to = request.to;
        call.method = request.method;
        call.request = std::move(request.bytes);
      }
      hostile.worker().rpc().call_all(calls, hostile.worker().counters());
      for (const Rpc::Call& call : calls) (call.status.ok() ? answered : refused)++;
    }
  });
  EXPECT_GT(refused, 0);
  EXPECT_EQ(answered + refused, kRounds * kCallsPerRound);

  // A table that was not there, which none of the requests could mean.
  Coordinator& other = engine_.add_coordinator();
  engine_.run(other, [&] {
    Session session(other);
    EXPECT_TRUE(session.node_statistics(0).ok());
    EXPECT_TRUE(session.node_statistics(1).ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostilePeerTest, testing::Range(uint64_t{1}, uint64_t{13}));

}  // namespace
}  // namespace rdmacc
