#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "rdma/bootstrap/membership.h"

// What an initiator and a node tell each other before the initiator's queue pairs work, over the
// membership's channel (Topic::kVerbsQueuePair). Little-endian, as every supported machine.
//
//   request   header | {queue pair number, first packet number} x queue_pairs
//   answer    header | the same of the node's | domains | datagram addresses of its threads
//
// A kLookup has no queue pairs, and its answer has neither queue pairs nor domains: it tells where
// the caller gets datagrams, and asks for the node's threads.

namespace rdmacc {

constexpr uint32_t kVerbsMagic = 0x42525652;  // "RVRB"
constexpr uint16_t kVerbsVersion = 2;  // as kTcpVersion
constexpr uint16_t kVerbsQueuePairsMax = 64;  // of one worker at one node
constexpr uint16_t kVerbsDomainsMax = 16;

// A port as others address it.
struct VerbsPortAddress {
  std::array<uint8_t, 16> gid{};
  uint16_t lid = 0;    // InfiniBand's; 0 on RoCE
  uint8_t mtu = 0;     // ibv_mtu: the largest datagram
  uint8_t global = 0;  // 1: addressed by gid
};

struct VerbsQueuePairAddress {
  uint32_t number = 0;
  uint32_t first_packet = 0;  // random, 24 bits
};

struct VerbsDatagramAddress {
  uint32_t incarnation = 0;  // of the worker; 0: no worker is there
  uint32_t number = 0;
  uint32_t key = 0;
};

struct VerbsDomainKey {
  uint64_t offset = 0, bytes = 0;
  uint32_t key = 0;
  uint32_t reserved = 0;
};

enum class VerbsRequestKind : uint16_t { kConnect = 1, kLookup = 2 };

struct VerbsRequestHeader {
  uint32_t magic = kVerbsMagic;
  uint16_t version = kVerbsVersion;
  VerbsRequestKind kind = VerbsRequestKind::kConnect;
  uint16_t worker = 0, node = 0;
  VerbsPortAddress port;
  VerbsDatagramAddress datagrams;  // where `worker` gets its own, and its incarnation
  uint32_t reserved = 0;
  uint64_t region_bytes = 0;  // of the topology
  uint16_t queue_pairs = 0;
  uint8_t reads_in_flight = 0;  // READs and atomics that the initiator may have in flight
  uint8_t reserved_too[5] = {};
};
static_assert(sizeof(VerbsRequestHeader) == 64);

struct VerbsAnswerHeader {
  uint32_t magic = kVerbsMagic;
  uint16_t version = kVerbsVersion;
  uint16_t queue_pairs = 0;
  uint16_t domains = 0, threads = 0;
  VerbsPortAddress port;
  uint8_t reads_in_flight = 0;  // that the node takes
  uint8_t reserved[7] = {};
};
static_assert(sizeof(VerbsAnswerHeader) == 40);

struct VerbsRequest {
  VerbsRequestHeader header;
  std::vector<VerbsQueuePairAddress> queue_pairs;

  Membership::Bytes encode();
  // Nothing if the bytes are not exactly one request.
  static std::optional<VerbsRequest> decode(std::span<const std::byte> bytes);
};

struct VerbsAnswer {
  VerbsAnswerHeader header;
  std::vector<VerbsQueuePairAddress> queue_pairs;
  std::vector<VerbsDomainKey> domains;
  std::vector<VerbsDatagramAddress> threads;

  Membership::Bytes encode();
  static std::optional<VerbsAnswer> decode(std::span<const std::byte> bytes);
  // Do the domains cover [0, region_bytes) in order, without a gap?
  bool covers(uint64_t region_bytes) const;
};

}  // namespace rdmacc
