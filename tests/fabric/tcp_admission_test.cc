#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "rdma/bootstrap/socket.h"
#include "rdma/tcp/tcp_wire.h"
#include "tests/fabric/fabric_harness.h"

// Processes that connect to the data port of a node's thread: without a ticket, with one of
// another, and members that send what may not be.

namespace rdmacc {
namespace {

struct Told {
  std::mutex mutex;
  std::vector<std::string> sentences;
};

HarnessOptions with_log(const std::shared_ptr<Told>& told) {
  HarnessOptions options;
  options.log = [told](const std::string& sentence) {
    const std::lock_guard<std::mutex> lock(told->mutex);
    told->sentences.push_back(sentence);
  };
  return options;
}

class TcpAdmissionTest : public testing::Test {
 protected:
  Membership& membership() { return static_cast<TcpFabric&>(cluster.fabric()).membership(); }
  Result<TcpTicket> ask(WorkerId worker, uint32_t incarnation) {
    const TcpTicketRequest request{0, worker, incarnation, 0, 0};
    const auto answer =
        membership().exchange(1, Membership::Topic::kTcpEndpoint, bytes_of(request), 5'000);
    if (!answer.ok()) return answer.status();
    TcpTicket ticket;
    CHECK(read_exactly(answer.value(), ticket));
    return ticket;
  }
  Result<TcpTicket> ask() { return ask(me.id(), me.endpoint().incarnation()); }

  Descriptor connect(uint16_t port) {
    Descriptor socket = std::move(*start_connect(*resolve_address("127.0.0.1", port)));
    pollfd ready{socket.get(), POLLOUT, 0};
    CHECK(poll(&ready, 1, 5'000) == 1);
    return socket;
  }
  static void send(const Descriptor& socket, std::span<const std::byte> bytes) {
    CHECK(write(socket.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  // Steps the node until it has answered `bytes` bytes; false when it closes the connection.
  bool receive(const Descriptor& socket, void* into, size_t bytes) {
    size_t have = 0;
    bool closed = false;
    EXPECT_TRUE(cluster.run_until([&] {
      const ssize_t got = read(socket.get(), static_cast<char*>(into) + have, bytes - have);
      if (got > 0) have += static_cast<size_t>(got);
      closed = got == 0 || (got < 0 && errno != EAGAIN);
      return closed || have == bytes;
    }));
    return !closed;
  }
  bool is_closed(const Descriptor& socket) {
    char byte;
    return !receive(socket, &byte, 1);
  }
  // A connection that has been let in.
  Descriptor enter() {
    const TcpTicket ticket = *ask();
    Descriptor socket = connect(ticket.port);
    const TcpHello hello{kTcpMagic, kTcpVersion, ticket.id, random_secret<RandomToken>()};
    send(socket, bytes_of(hello));
    TcpChallenge challenge;
    CHECK(receive(socket, &challenge, sizeof(challenge)));
    CHECK(challenge.proof == tcp_proof_of_node(ticket.key, hello, challenge.nonce));
    send(socket, bytes_of(TcpProof{tcp_proof_of_dialler(ticket.key, hello, challenge.nonce)}));
    return socket;
  }
  static std::vector<std::byte> chain(const std::vector<TcpVerb>& verbs, size_t written = 0) {
    TcpFrameHeader header{};
    header.type = TcpFrameType::kChain;
    header.flags = kTcpWantsReply;
    header.verbs = static_cast<uint16_t>(verbs.size());
    header.bytes = static_cast<uint32_t>(verbs.size() * sizeof(TcpVerb) + written);
    header.sequence = 1;
    std::vector<std::byte> bytes(sizeof(header) + header.bytes, std::byte{0xAB});
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), verbs.data(), verbs.size() * sizeof(TcpVerb));
    return bytes;
  }
  bool was_told(const std::string& what) {
    const std::lock_guard<std::mutex> lock(told->mutex);
    for (const std::string& sentence : told->sentences) {
      if (sentence.find(what) != std::string::npos) return true;
    }
    return false;
  }

  const std::shared_ptr<Told> told = std::make_shared<Told>();
  FabricHarness cluster{FabricKind::kTcp, with_log(told)};
  Worker& me = cluster.coordinator(0);
  Worker& other = cluster.coordinator(1);
};

TEST_F(TcpAdmissionTest, TicketsAreForOwnClaimsOnly) {
  EXPECT_TRUE(ask().ok());
  // Both are this process's.
  EXPECT_TRUE(ask(other.id(), other.endpoint().incarnation()).ok());
  EXPECT_EQ(Code::kUnavailable, ask(me.id(), me.endpoint().incarnation() + 1).status().code());
  EXPECT_EQ(Code::kUnavailable, ask(0, 1).status().code());  // node 0's thread
  EXPECT_EQ(Code::kUnavailable, ask(kNoWorker, 1).status().code());
  const auto short_one = membership().exchange(1, Membership::Topic::kTcpEndpoint, {}, 5'000);
  EXPECT_EQ(Code::kCorrupt, short_one.status().code());
}

TEST_F(TcpAdmissionTest, ATicketLetsInOnceAWorkerThatKnowsItsKey) {
  const TcpTicket ticket = *ask();
  const TcpHello hello{kTcpMagic, kTcpVersion, ticket.id, random_secret<RandomToken>()};
  TcpHello unknown = hello;
  unknown.ticket = random_secret<TicketId>();
  TcpHello version = hello;
  ++version.version;
  for (const TcpHello& bad : {unknown, version, TcpHello{}}) {
    const Descriptor stranger = connect(ticket.port);
    send(stranger, bytes_of(bad));
    EXPECT_TRUE(is_closed(stranger));
  }
  EXPECT_TRUE(was_told("it has no ticket"));
  EXPECT_TRUE(was_told("it has another version"));
  // The ticket's number alone, say overheard, is not enough, and is worth nothing after that.
  const Descriptor thief = connect(ticket.port);
  send(thief, bytes_of(hello));
  TcpChallenge challenge;
  ASSERT_TRUE(receive(thief, &challenge, sizeof(challenge)));
  EXPECT_EQ(challenge.proof, tcp_proof_of_node(ticket.key, hello, challenge.nonce));
  send(thief, bytes_of(TcpProof{challenge.proof}));  // said back
  EXPECT_TRUE(is_closed(thief));
  EXPECT_TRUE(was_told("it does not know the key of its ticket"));
  const Descriptor again = connect(ticket.port);
  send(again, bytes_of(hello));
  EXPECT_TRUE(is_closed(again));
}

TEST_F(TcpAdmissionTest, VerbsOutsideTheRegionOrOutOfShapeEndTheConnection) {
  const uint64_t end = cluster.fabric().topology().region_bytes;
  constexpr auto kUp = WordOrder::kAscending;
  std::memset(cluster.node(1).endpoint().local_region(), 0x11, end);
  const std::vector<std::pair<TcpVerb, size_t>> bad = {
      {{end, 0, 0, 8, Opcode::kRead, kUp, 0}, 0},
      {{end - 8, 0, 0, 16, Opcode::kWrite, kUp, 0}, 16},
      {{UINT64_MAX - 7, 0, 0, 16, Opcode::kWrite, kUp, 0}, 16},
      {{4, 0, 0, 8, Opcode::kWrite, kUp, 0}, 8},
      {{0, 0, 0, 4, Opcode::kWrite, kUp, 0}, 8},
      {{0, 0, 0, 0, Opcode::kRead, kUp, 0}, 0},
      {{0, 0, 0, 16, Opcode::kCompareSwap, kUp, 0}, 0},
      {{0, 0, 0, kTcpPieceBytesMax + 8, Opcode::kRead, kUp, 0}, 0},
      {{0, 0, 0, 8, static_cast<Opcode>(9), kUp, 0}, 0},
      {{0, 0, 0, 8, Opcode::kRead, static_cast<WordOrder>(7), 0}, 0},
      {{0, 0, 0, 8, Opcode::kWrite, kUp, 0}, 0},   // its bytes are missing
      {{0, 0, 0, 8, Opcode::kWrite, kUp, 0}, 16},  // or too many
      {{0, 0, 0, 8, Opcode::kRead, kUp, 1}, 0},
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    const Descriptor member = enter();
    // A good one before it in the same chain is not carried out either.
    send(member, chain({{64, 0, 1, 8, Opcode::kFetchAdd, kUp, 0}, bad[i].first}, bad[i].second));
    EXPECT_TRUE(is_closed(member)) << i;
  }
  EXPECT_TRUE(was_told("it sent verbs that may not be"));
  for (uint64_t at = 0; at < end; at += 8) {
    ASSERT_EQ(0x1111111111111111u, cluster.word_at(1, at)) << at;
  }
}

TEST_F(TcpAdmissionTest, FramesOutOfShapeEndTheConnection) {
  TcpFrameHeader good{8, TcpFrameType::kDatagram, 0, 0, 0};
  std::vector<TcpFrameHeader> bad(8, good);
  bad[0].bytes = kTcpDatagramBytesMax + 1;
  bad[1].bytes = 0;
  bad[2].type = static_cast<TcpFrameType>(0);
  bad[3].type = static_cast<TcpFrameType>(4);
  bad[4] = {kTcpFrameBytesMax + 8, TcpFrameType::kChain, 0, 1, 1};
  bad[5] = {32, TcpFrameType::kChain, 0, 0, 1};
  bad[6] = {32, TcpFrameType::kChain, 2, 1, 1};
  bad[7] = {8, TcpFrameType::kReply, 0, 0, 1};
  for (size_t i = 0; i < bad.size(); ++i) {
    const Descriptor member = enter();
    std::vector<std::byte> bytes(sizeof(TcpFrameHeader) + 64);
    std::memcpy(bytes.data(), &bad[i], sizeof(bad[i]));
    send(member, bytes);
    EXPECT_TRUE(is_closed(member)) << i;
  }
}

// A member that is let in twice is served on the later connection alone.
TEST_F(TcpAdmissionTest, ALaterConnectionFencesTheEarlier) {
  const Descriptor first = enter();
  const TcpVerb add{64, 0, 1, 8, Opcode::kFetchAdd, WordOrder::kAscending, 0};
  struct {
    TcpFrameHeader header;
    uint64_t seen;
  } reply;
  send(first, chain({add}));
  ASSERT_TRUE(receive(first, &reply, sizeof(reply)));
  EXPECT_EQ(0u, reply.seen);
  const Descriptor second = enter();
  (void)!write(first.get(), chain({add}).data(), chain({add}).size());
  EXPECT_TRUE(is_closed(first));
  send(second, chain({add}));
  ASSERT_TRUE(receive(second, &reply, sizeof(reply)));
  EXPECT_EQ(1u, reply.seen);  // what the first had still sent never happened
}

TEST_F(TcpAdmissionTest, HalfOpenConnectionsKeepNoWorkerOut) {
  const uint16_t port = ask()->port;
  std::vector<Descriptor> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(connect(port));
    cluster.node(1).scheduler().step();
  }
  const Descriptor member = enter();
  send(member, chain({{64, 0, 1, 8, Opcode::kFetchAdd, WordOrder::kAscending, 0}}));
  char reply[24];
  EXPECT_TRUE(receive(member, reply, sizeof(reply)));
  EXPECT_TRUE(is_closed(silent[0]));
}

}  // namespace
}  // namespace rdmacc
