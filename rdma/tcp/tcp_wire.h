#pragma once
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/fabric/verb.h"

// What goes over a data connection of the tcp fabric, from the worker that dialled to a node's
// thread and back, and the checks that come before anything of it is believed. Little-endian;
// every frame is filled up to a multiple of 8 bytes, so that words stay aligned.
//
//   chain     | header | TcpVerb[verbs] | bytes of its WRITEs, in order |
//   reply     | header | what its READs and atomics saw, in order |
//   datagram  | header | bytes |

namespace rdmacc {

// Of frames, messages, and records that are read by their addresses.
constexpr uint32_t kTcpVersion = 2;
constexpr uint32_t kTcpDatagramBytesMax = 4096;
// A longer chain is cut: so much may it bring along, so much may it ask for, so many verbs.
constexpr uint32_t kTcpSegmentBytesMax = 256 * 1024;
constexpr uint32_t kTcpPieceBytesMax = 64 * 1024;
constexpr uint32_t kTcpVerbsMax = 1024;

enum class TcpFrameType : uint8_t { kChain = 1, kReply = 2, kDatagram = 3 };
constexpr uint8_t kTcpWantsReply = 1;  // flag of a chain

struct TcpFrameHeader {
  uint32_t bytes;  // that follow, without the filling
  TcpFrameType type;
  uint8_t flags;
  uint16_t verbs;     // chain
  uint64_t sequence;  // chain, and the reply to it
};
static_assert(sizeof(TcpFrameHeader) == 16 && std::is_trivially_copyable_v<TcpFrameHeader>);

struct TcpVerb {
  uint64_t offset;
  uint64_t compare;
  uint64_t operand;
  uint32_t bytes;
  Opcode opcode;
  WordOrder order;
  uint16_t reserved;
};
static_assert(sizeof(TcpVerb) == 32 && std::is_trivially_copyable_v<TcpVerb>);

constexpr uint32_t kTcpFrameBytesMax =
    kTcpSegmentBytesMax + kTcpVerbsMax * static_cast<uint32_t>(sizeof(TcpVerb));

constexpr size_t tcp_filled(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

struct TcpFrame {
  TcpFrameHeader header;
  std::span<const std::byte> payload;
  size_t frame_bytes = 0;  // header and filling included
};

// The frame at the beginning of what has arrived. nullopt: not all of it is there, or *malformed.
std::optional<TcpFrame> next_tcp_frame(std::span<const std::byte> arrived, bool* malformed);

// Splits a chain that a peer wants carried out on a region of `region_bytes`: verbs that lie
// within it, in words, with as many bytes as they need. False: not one of them may be touched.
// `local` of a WRITE points to its bytes; of the others it is null, and *reply_bytes tells the sum.
bool read_tcp_chain(const TcpFrame& frame, uint64_t region_bytes, std::span<Verb> verbs,
                    size_t* reply_bytes);

// ---- Getting to know each other. Node's control channel -> dialler: a ticket, once and for one
// connection. Then over the connection: hello, challenge, proof.

using TicketId = RandomToken;

struct TcpTicketRequest {
  uint16_t thread;
  WorkerId worker;
  uint32_t incarnation;
  uint16_t after_loss;  // 1: an earlier connection to this node ended; all of them are to end
  uint16_t reserved;
};
static_assert(sizeof(TcpTicketRequest) == 12);

struct TcpTicket {
  TicketId id;
  SecretKey key;
  uint32_t incarnation;  // of the thread
  uint16_t port;
  uint16_t reserved;
};
static_assert(sizeof(TcpTicket) == 56);

constexpr uint32_t kTcpMagic = 0x31504354;  // "TCP1"

struct TcpHello {
  uint32_t magic;
  uint32_t version;
  TicketId ticket;
  RandomToken nonce;
};
static_assert(sizeof(TcpHello) == 40);

struct TcpChallenge {
  RandomToken nonce;
  SecretKey proof;
};
static_assert(sizeof(TcpChallenge) == 48);

struct TcpProof {
  SecretKey proof;
};
static_assert(sizeof(TcpProof) == 32);

// HMAC over the hello and the node's nonce; the two sides' differ.
SecretKey tcp_proof_of_node(const SecretKey& key, const TcpHello& hello, const RandomToken& nonce);
SecretKey tcp_proof_of_dialler(const SecretKey& key, const TcpHello& hello,
                               const RandomToken& nonce);

template <typename T>
std::span<const std::byte> bytes_of(const T& object) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span<const T, 1>(&object, 1));
}

// False unless there are exactly its bytes.
template <typename T>
bool read_exactly(std::span<const std::byte> bytes, T& object) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(&object, bytes.data(), sizeof(T));
  return true;
}

}  // namespace rdmacc
