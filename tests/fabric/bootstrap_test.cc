#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/bootstrap/control_wire.h"
#include "rdma/bootstrap/socket.h"
#include "tests/fabric/fabric_harness.h"

// Which processes become members, and which do not: the config file, the secret, messages, and
// connections to node 0 that are no member's.

namespace rdmacc {
namespace {

constexpr char kGood[] =
    "# a comment\n"
    "name = prod-1\n"
    "nodes = 10.0.0.1:7400, [::1]:7401   # by node id\n"
    "secret_file = secret\n"
    "\n"
    "threads_per_node = 2\n"
    "workers_max = 100\n"
    "memory_mb = 512\n";

TEST(ClusterConfigFile, SaysWhatTheClusterIs) {
  const Result<ClusterConfig> config = parse_cluster_config(kGood, "/etc/rdmacc");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ("prod-1", config.value().name);
  ASSERT_EQ(2u, config.value().nodes.size());
  EXPECT_EQ("10.0.0.1", config.value().nodes[0].host);
  EXPECT_EQ("::1", config.value().nodes[1].host);
  EXPECT_EQ(7401, config.value().nodes[1].port);
  EXPECT_EQ("/etc/rdmacc/secret", config.value().secret_file);
  EXPECT_EQ(2, config.value().topology.nodes);
  EXPECT_EQ(2, config.value().topology.threads_per_node);
  EXPECT_EQ(100, config.value().topology.workers_max);
  EXPECT_EQ(512ull << 20, config.value().topology.region_bytes);
}

TEST(ClusterConfigFile, SaysWhereRowsAreOnDisk) {
  const auto parse = [](const std::string& more) {
    return parse_cluster_config(kGood + more, "/etc/rdmacc");
  };
  EXPECT_TRUE(parse("").value().data_dir.empty());
  EXPECT_TRUE(parse("durability = memory\n").value().data_dir.empty());
  EXPECT_EQ("/etc/rdmacc/rows", parse("durability = disk\ndata_dir = rows\n").value().data_dir);
  const Result<ClusterConfig> config =
      parse("data_dir = /var/rows\ndurability = disk\ncheckpoint_log_mb = 3\n");
  EXPECT_EQ("/var/rows", config.value().data_dir);
  EXPECT_EQ(3ull << 20, config.value().checkpoint_log_bytes);
  EXPECT_EQ("durability = disk: data_dir is missing",
            parse("durability = disk\n").status().message());
  EXPECT_EQ("data_dir: it is for durability = disk", parse("data_dir = rows\n").status().message());
  EXPECT_EQ("line 9: durability: must be disk or memory",
            parse("durability = tape\n").status().message());
}

TEST(ClusterConfigFile, NamesWhatIsWrong) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = kGood;
    text.replace(text.find(from), from.size(), to);
    const Result<ClusterConfig> config = parse_cluster_config(text, ".");
    EXPECT_FALSE(config.ok()) << to;
    return config.ok() ? std::string() : config.status().message();
  };
  EXPECT_EQ("line 2: expected key = value", refusal("name = prod-1", "name prod-1"));
  EXPECT_EQ("name is missing", refusal("name = prod-1", ""));
  EXPECT_EQ("name: must be [A-Za-z0-9_-]{1,64}", refusal("prod-1", "../prod"));
  EXPECT_EQ("line 3: nodes: '10.0.0.1' is not host:port", refusal("10.0.0.1:7400", "10.0.0.1"));
  EXPECT_EQ("line 3: nodes: '::1:7401': an IPv6 address stands in brackets",
            refusal("[::1]:7401", "::1:7401"));
  EXPECT_EQ("line 3: nodes: '70000' is not a number from 1 to 65535", refusal("7400", "70000"));
  EXPECT_EQ("nodes: 10.0.0.1:7400 stands there twice", refusal("[::1]:7401", "10.0.0.1:7400"));
  EXPECT_EQ("line 6: threads_per_node: '0' is not a number from 1 to 64",
            refusal("threads_per_node = 2", "threads_per_node = 0"));
  EXPECT_EQ("line 6: name is set twice", refusal("threads_per_node = 2", "name = x"));
  EXPECT_EQ("line 6: colour: there is no such setting",
            refusal("threads_per_node = 2", "colour = red"));
  EXPECT_EQ("line 8: memory_mb: '-1' is not a number from 1 to 16777216",
            refusal("memory_mb = 512", "memory_mb = -1"));
  EXPECT_EQ("workers_max: must be 4 .. 32768 for 4 node threads",
            refusal("workers_max = 100", "workers_max = 3"));
  EXPECT_FALSE(read_cluster_config("/nowhere/at/all").ok());
}

class Secrets : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(create_secret_file(file).ok()); }
  void TearDown() override { unlink(file.c_str()); }
  Code refusal() const { return load_cluster_key(file, "a").status().code(); }
  const std::string file = testing::TempDir() + unique_cluster() + ".secret";
};

TEST_F(Secrets, AreRefusedUnlessOnlyTheirOwnerReadsThem) {
  ASSERT_TRUE(load_cluster_key(file, "a").ok());
  for (const mode_t mode : {0644, 0640, 0604, 0660, 0700, 04600}) {
    ASSERT_EQ(0, chmod(file.c_str(), mode));
    EXPECT_EQ(Code::kInvalidArgument, refusal()) << std::oct << mode;
  }
  ASSERT_EQ(0, chmod(file.c_str(), 0400));
  EXPECT_TRUE(load_cluster_key(file, "a").ok());
  EXPECT_FALSE(create_secret_file(file).ok());  // it is not overwritten
}

TEST_F(Secrets, AreLongEnoughAndNotTooLong) {
  for (const auto& [bytes, good] : {std::pair<size_t, bool>(0, false),
                                    {31, false},
                                    {32, true},
                                    {65'536, true},
                                    {65'537, false}}) {
    {
      std::ofstream out(file, std::ios::trunc);
      out << std::string(bytes, 'x');
    }
    EXPECT_EQ(good, load_cluster_key(file, "a").ok()) << bytes;
  }
  EXPECT_FALSE(load_cluster_key("/dev/zero", "a").ok());
  EXPECT_FALSE(load_cluster_key("/nowhere/at/all", "a").ok());
}

TEST_F(Secrets, AreAnotherKeyInAnotherCluster) {
  EXPECT_EQ(*load_cluster_key(file, "a"), *load_cluster_key(file, "a"));
  EXPECT_NE(*load_cluster_key(file, "a"), *load_cluster_key(file, "b"));
}

// Every message, cut at every length, and with anything behind it.
TEST(ControlWire, TakesMessagesWholeOrNotAtAll) {
  const auto check = [](const auto& message) {
    const ControlBytes bytes = encode(message);
    std::decay_t<decltype(message)> read;
    EXPECT_TRUE(decode(bytes, read));
    EXPECT_EQ(bytes, encode(read));
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(decode(std::span(bytes).first(length), read)) << length;
    }
    ControlBytes longer = bytes;
    longer.push_back(std::byte{1});
    EXPECT_FALSE(decode(longer, read));
  };
  const ClaimProof proof{{7, 3}, random_secret<RandomToken>()};
  HelloMessage hello;
  hello.process = ProcessIdentity::self();
  hello.claims = {proof, proof};
  check(hello);
  HelloReply reply;
  reply.clock.now_ns = 5;
  reply.kept = {true, false};
  check(reply);
  check(TableMessage{9, {{1, 2, {}}, {3, 0, {}}}});
  check(proof);
  check(std::vector<ClaimProof>{proof});
  check(Membership::Claim{1, 2});
  // A count that its bytes do not bear out.
  ControlBytes many = encode(std::vector<ClaimProof>{proof});
  many[0] = std::byte{2};
  std::vector<ClaimProof> claims;
  EXPECT_FALSE(decode(many, claims));
  std::fill(many.begin(), many.begin() + 4, std::byte{0xFF});
  EXPECT_FALSE(decode(many, claims));
  EXPECT_EQ(Code::kTimeout, decode_error(encode_error(Status(Code::kTimeout, "late"))).code());
  EXPECT_EQ(Code::kCorrupt, decode_error({}).code());
}

TEST(ControlWire, FramesSayHowLongTheyAreAndNoMore) {
  ControlBytes frame;
  append_control_frame(frame, ControlType::kPing, 7, {});
  bool malformed = false;
  ASSERT_TRUE(next_control_frame(frame, &malformed));
  for (size_t length = 0; length < frame.size(); ++length) {
    EXPECT_FALSE(next_control_frame(std::span(frame).first(length), &malformed));
    EXPECT_FALSE(malformed);
  }
  for (const auto& [at, value] : {std::pair(3, 1), {8, 0}, {8, 99}, {9, 1}}) {
    ControlBytes bad = frame;
    bad[static_cast<size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_FALSE(next_control_frame(bad, &malformed));
    EXPECT_TRUE(malformed) << at;
  }
}

// ---- Connections that are no member's. One node 0, which runs on a thread of its own; no other
// member is needed.

class NonMembers : public testing::Test {
 protected:
  void SetUp() override {
    loopback = std::move(*LoopbackCluster::make(unique_cluster(), topology));
    ClusterConfig config = loopback->config();
    config.log = [this](const std::string& sentence) {
      const std::lock_guard<std::mutex> lock(mutex);
      told.push_back(sentence);
    };
    node = std::move(*Membership::open_as_node(config, 0));
  }
  void TearDown() override {
    node.reset();
    Membership::destroy(loopback->config());
  }

  Descriptor connect() const {
    auto address = resolve_address("127.0.0.1", loopback->config().nodes[0].port);
    auto socket = start_connect(*address);
    CHECK(socket.ok());
    pollfd ready{socket->get(), POLLOUT, 0};
    CHECK(poll(&ready, 1, 5'000) == 1);
    return std::move(*socket);
  }
  static void send_all(const Descriptor& socket, std::span<const std::byte> bytes) {
    (void)!write(socket.get(), bytes.data(), bytes.size());
  }
  // Reads until the other side closes; false when it does not within the time.
  static bool is_closed(const Descriptor& socket, int ms = 8'000) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < end) {
      pollfd ready{socket.get(), POLLIN, 0};
      if (poll(&ready, 1, 50) <= 0) continue;
      char bytes[4096];
      const ssize_t got = read(socket.get(), bytes, sizeof(bytes));
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
    }
    return false;
  }
  bool was_told(const std::string& what) {
    for (int i = 0; i < 500; ++i) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        for (const std::string& sentence : told) {
          if (sentence.find(what) != std::string::npos) return true;
        }
      }
      usleep(10'000);
    }
    return false;
  }
  // What becomes of a coordinator with this config.
  static Status join(const ClusterConfig& config) {
    auto membership = Membership::open(config);
    if (!membership.ok()) return membership.status();
    const auto claim = (*membership)->claim();
    if (claim.ok()) (*membership)->leave(claim.value());
    return claim.status();
  }
  bool members_are_welcome() const { return join(loopback->config()).ok(); }

  const Topology topology{
      .nodes = 1, .threads_per_node = 1, .workers_max = 8, .region_bytes = 1 << 20};
  std::unique_ptr<LoopbackCluster> loopback;
  std::unique_ptr<Membership> node;
  std::mutex mutex;
  std::vector<std::string> told;
};

TEST_F(NonMembers, WithAnotherSecretAreRefused) {
  auto other = std::move(*LoopbackCluster::make(loopback->config().name, topology));
  ClusterConfig config = loopback->config();
  config.secret_file = other->config().secret_file;
  EXPECT_EQ(Code::kUnavailable, join(config).code());
  EXPECT_TRUE(was_told("it has another secret"));
  EXPECT_TRUE(members_are_welcome());
}

TEST_F(NonMembers, OfAnotherClusterAreRefused) {
  ClusterConfig config = loopback->config();
  config.name += "-other";
  EXPECT_EQ(Code::kUnavailable, join(config).code());
  EXPECT_TRUE(was_told("it asks for another cluster"));
  EXPECT_TRUE(members_are_welcome());
}

TEST_F(NonMembers, WithAnotherTopologyAreTold) {
  ClusterConfig config = loopback->config();
  config.topology.workers_max = 9;
  const Status status = join(config);
  EXPECT_EQ(Code::kInvalidArgument, status.code());
  EXPECT_NE(std::string::npos, status.message().find("workers_max")) << status.message();
  EXPECT_TRUE(members_are_welcome());
}

// Also a process that leads a member's own connection back to it would be found out like this.
TEST_F(NonMembers, ThatAreAnotherNodeThanExpectedAreRefused) {
  auto two = std::move(*LoopbackCluster::make(
      unique_cluster(),
      {.nodes = 2, .threads_per_node = 1, .workers_max = 8, .region_bytes = 1 << 20}));
  auto first = std::move(*Membership::open_as_node(two->config(), 0));
  ClusterConfig swapped = two->config();
  swapped.nodes[1] = two->config().nodes[0];
  swapped.nodes[0] = HostPort{"127.0.0.1", two->config().nodes[1].port};
  auto coordinator = std::move(*Membership::open(swapped));
  const auto answer = coordinator->exchange(1, Membership::Topic::kTcpEndpoint, {}, 2'000);
  EXPECT_EQ(Code::kInvalidArgument, answer.status().code());
  EXPECT_NE(std::string::npos, answer.status().message().find("it is node 0"))
      << answer.status().message();
  first.reset();
  Membership::destroy(two->config());
}

TEST_F(NonMembers, ThatSpeakNoTlsAreRefused) {
  Random random(5);
  for (int i = 0; i < 20; ++i) {
    const Descriptor socket = connect();
    std::vector<std::byte> bytes(1 + random.below(3'000));
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.next());
    if (i % 2 == 0) bytes[0] = std::byte{22};  // a handshake record
    send_all(socket, bytes);
    if (i % 4 >= 2) shutdown(socket.get(), SHUT_WR);
    EXPECT_TRUE(is_closed(socket)) << i;
  }
  EXPECT_TRUE(was_told("refused 127.0.0.1"));
  EXPECT_TRUE(members_are_welcome());
}

TEST_F(NonMembers, ThatSpeakAnOlderTlsOrHaveNoKeyAreRefused) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const Descriptor socket = connect();
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, version);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    SSL* ssl = SSL_new(context);
    fcntl(socket.get(), F_SETFL, 0);
    SSL_set_fd(ssl, socket.get());
    EXPECT_NE(1, SSL_connect(ssl)) << version;
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  EXPECT_TRUE(members_are_welcome());
}

// Many connections that say nothing: bounded, closed after a while, and no member is kept out.
TEST_F(NonMembers, HalfOpenConnectionsKeepNoMemberOut) {
  std::vector<Descriptor> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(connect());
  EXPECT_TRUE(members_are_welcome());
  EXPECT_TRUE(was_told("others came that have not greeted either"));
  for (const Descriptor& socket : silent) EXPECT_TRUE(is_closed(socket));
}

// What a member said once, said again by another process, opens nothing.
TEST_F(NonMembers, ThatReplayAMembersMessagesAreRefused) {
  SocketAddress any = *resolve_address("127.0.0.1", 1);
  any.set_port(0);
  const Descriptor listen = std::move(*listen_at(any, 4));
  ClusterConfig config = loopback->config();
  config.nodes[0].port = *port_of(listen);
  std::vector<std::byte> said;
  std::atomic<bool> stop = false;
  // Between the member and node 0.
  std::thread between([&] {
    Descriptor member;
    SocketAddress peer;
    while (!stop && member.get() < 0) {
      member = accept_from(listen, &peer);
      if (member.get() < 0) usleep(1'000);
    }
    const Descriptor onward = connect();
    while (!stop) {
      pollfd ready[2] = {{member.get(), POLLIN, 0}, {onward.get(), POLLIN, 0}};
      if (poll(ready, 2, 20) <= 0) continue;
      char bytes[4096];
      for (const Descriptor* from : {&std::as_const(member), &onward}) {
        const ssize_t got = read(from->get(), bytes, sizeof(bytes));
        if (got <= 0) continue;
        const std::span<const char> part(bytes, static_cast<size_t>(got));
        if (from == &member) {
          said.insert(said.end(), std::as_bytes(part).begin(), std::as_bytes(part).end());
        }
        send_all(from == &member ? onward : member, std::as_bytes(part));
      }
    }
  });
  const Status joined = join(config);
  stop = true;
  between.join();
  ASSERT_TRUE(joined.ok()) << joined.to_string();
  ASSERT_GT(said.size(), 300u);
  const uint64_t version = node->version();
  const Descriptor again = connect();
  send_all(again, said);
  EXPECT_TRUE(is_closed(again));
  EXPECT_TRUE(was_told("refused 127.0.0.1"));
  EXPECT_EQ(version, node->version());  // nothing was claimed
  // The key material and names are not to be seen in what went over the wire.
  const std::string text(reinterpret_cast<const char*>(said.data()), said.size());
  std::ifstream file(loopback->config().secret_file, std::ios::binary);
  const std::string secret((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(std::string::npos, text.find(secret.substr(0, 16)));
}

}  // namespace
}  // namespace rdmacc
