#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "rdma/rpc/rpc.h"

// What RPC datagrams look like, and the check that every one passes before anything in it is
// believed. Little-endian, as every supported machine.
//
//   | datagram header 16 | fragment header 20 | payload | fragment header 20 | payload | ...
//
// A message is cut at multiples of fragment_payload_bytes(); each fragment says where it belongs,
// so that they may arrive in any order and more than once.

namespace rdmacc {

constexpr uint32_t kRpcMagic = 0x52504331;  // "RPC1"

struct RpcDatagramHeader {
  uint32_t magic;
  uint32_t from_incarnation;
  uint32_t to_incarnation;  // R2: another owner of the worker id refuses the datagram
  uint32_t reserved;
};
static_assert(sizeof(RpcDatagramHeader) == 16 && std::is_trivially_copyable_v<RpcDatagramHeader>);

enum class RpcKind : uint8_t {
  kRequest = 1,
  kReply = 2,
  kWorking = 3,  // the request is complete and its handler has not ended; no payload
  kCancel = 4,   // the caller does not want the call of this slot and sequence any more; likewise
};

struct RpcFragmentHeader {
  uint32_t sequence;     // of the call in its slot
  uint32_t total_bytes;  // of the message
  uint32_t offset;       // of the payload in the message
  uint16_t bytes;        // of the payload
  uint16_t method;       // request: the method; reply: detail of the status
  RpcKind kind;
  uint8_t slot;
  Code code;  // reply: if not kOk, the message is the status' text
  uint8_t reserved;
};
static_assert(sizeof(RpcFragmentHeader) == 20 && std::is_trivially_copyable_v<RpcFragmentHeader>);

constexpr uint32_t fragment_payload_bytes(uint32_t datagram_bytes_max) {
  return (datagram_bytes_max -
          static_cast<uint32_t>(sizeof(RpcDatagramHeader) + sizeof(RpcFragmentHeader))) &
         ~7u;
}

// Walks over the fragments of a datagram. next() is false at the end and at the first thing that
// is not well-formed; malformed() tells which.
class RpcDatagramReader {
 public:
  RpcDatagramReader(std::span<const std::byte> datagram, uint32_t payload_bytes)
      : payload_bytes_(payload_bytes) {
    if (datagram.size() < sizeof(header_)) {
      malformed_ = true;
      return;
    }
    std::memcpy(&header_, datagram.data(), sizeof(header_));
    malformed_ = header_.magic != kRpcMagic;
    rest_ = datagram.subspan(sizeof(header_));
  }

  const RpcDatagramHeader& header() const { return header_; }
  bool malformed() const { return malformed_; }
  bool at_end() const { return rest_.empty(); }

  bool next(RpcFragmentHeader* fragment, std::span<const std::byte>* payload) {
    if (malformed_ || rest_.empty()) return false;
    malformed_ = true;
    if (rest_.size() < sizeof(*fragment)) return false;
    std::memcpy(fragment, rest_.data(), sizeof(*fragment));
    rest_ = rest_.subspan(sizeof(*fragment));
    if (!well_formed(*fragment) || fragment->bytes > rest_.size()) return false;
    *payload = rest_.first(fragment->bytes);
    rest_ = rest_.subspan(fragment->bytes);
    malformed_ = false;
    return true;
  }

 private:
  bool well_formed(const RpcFragmentHeader& f) const {
    if (f.kind < RpcKind::kRequest || f.kind > RpcKind::kCancel) return false;
    if (f.slot >= Rpc::kCallsPerPeer || f.code > Code::kSystem) return false;
    if (f.total_bytes > kMaxMessageBytes || f.offset > f.total_bytes) return false;
    const bool bare = f.kind == RpcKind::kWorking || f.kind == RpcKind::kCancel;
    if (bare && f.total_bytes != 0) return false;
    if (f.offset % payload_bytes_ != 0) return false;
    if (f.total_bytes > 0 && f.offset == f.total_bytes) return false;
    return f.bytes == std::min(payload_bytes_, f.total_bytes - f.offset);
  }

  const uint32_t payload_bytes_;
  RpcDatagramHeader header_{};
  std::span<const std::byte> rest_;
  bool malformed_ = false;
};

// Puts the fragments of one message together in a buffer of its owner's.
class RpcAssembly {
 public:
  enum class Outcome : uint8_t { kPartial, kComplete, kMismatch };

  void clear() { started_ = false; }

  // kComplete with the fragment that was missing last; nothing is to be added after that.
  Outcome add(const RpcFragmentHeader& fragment, std::span<const std::byte> payload,
              uint32_t payload_bytes, Rpc::Bytes& buffer) {
    if (!started_ && payload.size() == fragment.total_bytes) {  // all of it
      buffer.assign(payload.begin(), payload.end());
      return Outcome::kComplete;
    }
    if (!started_) start(fragment.total_bytes, payload_bytes, buffer);
    if (fragment.total_bytes != total_bytes_) return Outcome::kMismatch;
    const uint32_t number = fragment.offset / payload_bytes;
    CHECK(number / 64 < have_.size() && fragment.offset + payload.size() <= buffer.size());
    const uint64_t bit = 1ull << (number % 64);
    if ((have_[number / 64] & bit) != 0) return Outcome::kPartial;
    have_[number / 64] |= bit;
    std::copy(payload.begin(), payload.end(), buffer.begin() + fragment.offset);
    CHECK(missing_ > 0);
    return --missing_ == 0 ? Outcome::kComplete : Outcome::kPartial;
  }

 private:
  void start(uint32_t total_bytes, uint32_t payload_bytes, Rpc::Bytes& buffer) {
    started_ = true;
    total_bytes_ = total_bytes;
    missing_ = total_bytes == 0 ? 1 : (total_bytes + payload_bytes - 1) / payload_bytes;
    have_.assign((missing_ + 63) / 64, 0);
    buffer.resize(total_bytes);
  }

  bool started_ = false;
  uint32_t total_bytes_ = 0;
  uint32_t missing_ = 0;
  std::vector<uint64_t> have_;
};

}  // namespace rdmacc
