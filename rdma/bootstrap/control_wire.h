#pragma once
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rdma/bootstrap/cluster_secret.h"
#include "rdma/bootstrap/membership.h"

// What members say to each other over the authenticated channel, and the check that every message
// passes before anything in it is believed. Little-endian.
//
//   | bytes of the payload 4 | request 4 | type 1 | 0 0 0 | payload |
//
// Either side asks; kReply and kError carry the asker's `request`. kTable, kTableAck: no answer.

namespace rdmacc {

constexpr uint32_t kControlVersion = 1;
constexpr size_t kControlPayloadBytesMax = Membership::kMessageBytesMax + 64;
constexpr uint16_t kNoNode = 0xFFFF;    // of a coordinator's process
constexpr uint16_t kNoThread = 0xFFFF;  // a claim that is a coordinator's

enum class ControlType : uint8_t {
  kHello = 1,    // the first message of the connecting process
  kClaim = 2,    // to node 0
  kLeave = 3,    // to node 0
  kPresent = 4,  // to other nodes: the claims of this process
  kExchange = 5,
  kPing = 6,
  kFence = 7,  // from node 0 to a node
  kTable = 8,  // from node 0
  kTableAck = 9,
  kReply = 10,
  kError = 11,
};

struct ControlHeader {
  uint32_t bytes;
  uint32_t request;
  ControlType type;
  uint8_t reserved[3];
};
static_assert(sizeof(ControlHeader) == 12 && std::is_trivially_copyable_v<ControlHeader>);

struct ControlFrame {
  ControlHeader header;
  std::span<const std::byte> payload;
};

// The next frame of what has arrived. nullopt: not all of it is there yet, or *malformed.
std::optional<ControlFrame> next_control_frame(std::span<const std::byte> arrived, bool* malformed);

using ControlBytes = Membership::Bytes;
void append_control_frame(ControlBytes& out, ControlType type, uint32_t request,
                          std::span<const std::byte> payload);

// A worker id, and the proof that it is the sender's: node 0 has told the nodes alone.
struct ClaimProof {
  Membership::Claim claim;
  RandomToken token{};
};

// Tells processes of one host apart, and whether one of them still runs.
struct ProcessIdentity {
  RandomToken boot_id{};  // of its host
  uint32_t pid = 0;
  uint64_t start_time = 0;
  static ProcessIdentity self();
};

struct HelloMessage {
  Topology topology;
  uint16_t node = kNoNode;
  ProcessIdentity process;
  std::vector<ClaimProof> claims;  // of an earlier channel
};

// Node 0's clock when it answered.
struct ClockReading {
  RandomToken boot_id{};
  uint64_t epoch_ns = 0;   // CLOCK_MONOTONIC of its host at the cluster's epoch
  uint64_t now_ns = 0;     // since the epoch
  uint64_t memory_id = 0;  // of node 0's claim table; 0: it is another node that answers
};

struct HelloReply {
  uint16_t node = 0;
  ClockReading clock;
  std::vector<bool> kept;  // by claim of the message: it stands
};

struct TableEntry {
  WorkerId worker = 0;
  uint32_t incarnation = 0;  // 0: none
  RandomToken token{};       // zero for coordinators
};

struct TableMessage {
  uint64_t version = 0;
  std::vector<TableEntry> entries;
};
constexpr size_t kTableEntriesMax = 2'000;  // of one message

struct ExchangeMessage {
  uint16_t topic = 0;
  std::span<const std::byte> bytes;  // points into the payload
};

ControlBytes encode(const HelloMessage& message);
ControlBytes encode(const HelloReply& message);
ControlBytes encode(const ClockReading& message);
ControlBytes encode(const TableMessage& message);
ControlBytes encode(const ExchangeMessage& message);
ControlBytes encode(const ClaimProof& message);
ControlBytes encode(const std::vector<ClaimProof>& message);
ControlBytes encode(const Membership::Claim& message);
ControlBytes encode_number(uint64_t number);
ControlBytes encode_error(const Status& status);

// False unless the payload is exactly such a message and its numbers are in range.
bool decode(std::span<const std::byte> payload, HelloMessage& message);
bool decode(std::span<const std::byte> payload, HelloReply& message);
bool decode(std::span<const std::byte> payload, ClockReading& message);
bool decode(std::span<const std::byte> payload, TableMessage& message);
bool decode(std::span<const std::byte> payload, ExchangeMessage& message);
bool decode(std::span<const std::byte> payload, ClaimProof& message);
bool decode(std::span<const std::byte> payload, std::vector<ClaimProof>& message);
bool decode(std::span<const std::byte> payload, Membership::Claim& message);
bool decode_number(std::span<const std::byte> payload, uint64_t* number);
// The error that a peer sent; kCorrupt when it is none.
Status decode_error(std::span<const std::byte> payload);

}  // namespace rdmacc
