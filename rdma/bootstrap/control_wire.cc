#include "rdma/bootstrap/control_wire.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "rdma/base/host_process.h"

namespace rdmacc {
namespace {

constexpr size_t kErrorTextBytesMax = 400;
constexpr size_t kClaimsMax = 1024;  // of one process

class Writer {
 public:
  template <typename T>
  Writer& number(T value) {
    static_assert(std::is_integral_v<T>);
    const auto* start = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), start, start + sizeof(value));
    return *this;
  }
  Writer& token(const RandomToken& token) { return raw(std::as_bytes(std::span(token))); }
  Writer& raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Writer& claim(const ClaimProof& proof) {
    return number(proof.claim.worker).number(proof.claim.incarnation).token(proof.token);
  }
  Writer& clock(const ClockReading& clock) {
    return token(clock.boot_id).number(clock.epoch_ns).number(clock.now_ns).number(clock.memory_id);
  }
  ControlBytes take() { return std::move(bytes_); }

 private:
  ControlBytes bytes_;
};

// After the first thing that is not there every read gives zeros, and ended_well() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  void number(T& value) {
    value = 0;
    copy(&value, sizeof(value));
  }
  void token(RandomToken& token) { copy(token.data(), token.size()); }
  void claim(ClaimProof& proof) {
    number(proof.claim.worker);
    number(proof.claim.incarnation);
    token(proof.token);
  }
  void clock(ClockReading& clock) {
    token(clock.boot_id);
    number(clock.epoch_ns);
    number(clock.now_ns);
    number(clock.memory_id);
  }
  // How many things of at least `bytes_each` follow; 0 and the end when they cannot.
  size_t count(size_t most, size_t bytes_each) {
    uint32_t value = 0;
    number(value);
    if (value > most || value * bytes_each > rest_.size()) fail();
    return failed_ ? 0 : value;
  }
  std::span<const std::byte> remainder() { return std::exchange(rest_, {}); }
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  bool ended_well() const { return !failed_ && rest_.empty(); }

 private:
  void copy(void* into, size_t bytes) {
    if (rest_.size() < bytes) {
      std::memset(into, 0, bytes);
      return fail();
    }
    std::memcpy(into, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

constexpr size_t kClaimBytes = 2 + 4 + 16;

void write_claims(Writer& out, const std::vector<ClaimProof>& claims) {
  out.number(static_cast<uint32_t>(claims.size()));
  for (const ClaimProof& claim : claims) out.claim(claim);
}

void read_claims(Reader& in, std::vector<ClaimProof>& claims) {
  claims.resize(in.count(kClaimsMax, kClaimBytes));
  for (ClaimProof& claim : claims) in.claim(claim);
}

RandomToken host_boot_id() {
  RandomToken id{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  size_t digits = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits == 2 * id.size()) continue;
    id[digits / 2] = static_cast<unsigned char>(id[digits / 2] * 16 + digit);
    ++digits;
  }
  // Without /proc no two processes are known to share a host.
  if (digits != 2 * id.size()) fill_random(id);
  return id;
}

}  // namespace

ProcessIdentity ProcessIdentity::self() {
  static const RandomToken boot_id = host_boot_id();
  const HostProcess process = HostProcess::self();
  return ProcessIdentity{boot_id, process.pid, process.start_time};
}

std::optional<ControlFrame> next_control_frame(std::span<const std::byte> arrived,
                                               bool* malformed) {
  *malformed = false;
  ControlFrame frame;
  if (arrived.size() < sizeof(frame.header)) return std::nullopt;
  std::memcpy(&frame.header, arrived.data(), sizeof(frame.header));
  const ControlHeader& header = frame.header;
  if (header.bytes > kControlPayloadBytesMax || header.type < ControlType::kHello ||
      header.type > ControlType::kError || header.reserved[0] != 0 || header.reserved[1] != 0 ||
      header.reserved[2] != 0) {
    *malformed = true;
    return std::nullopt;
  }
  if (arrived.size() - sizeof(header) < header.bytes) return std::nullopt;
  frame.payload = arrived.subspan(sizeof(header), header.bytes);
  return frame;
}

void append_control_frame(ControlBytes& out, ControlType type, uint32_t request,
                          std::span<const std::byte> payload) {
  CHECK(type >= ControlType::kHello && type <= ControlType::kError);
  CHECK(payload.size() <= kControlPayloadBytesMax);
  const ControlHeader header{static_cast<uint32_t>(payload.size()), request, type, {}};
  const auto* start = reinterpret_cast<const std::byte*>(&header);
  out.insert(out.end(), start, start + sizeof(header));
  out.insert(out.end(), payload.begin(), payload.end());
}

ControlBytes encode(const HelloMessage& message) {
  Writer out;
  out.number(kControlVersion)
      .number(message.topology.nodes)
      .number(message.topology.threads_per_node)
      .number(message.topology.workers_max)
      .number(message.topology.region_bytes)
      .number(message.node)
      .token(message.process.boot_id)
      .number(message.process.pid)
      .number(message.process.start_time);
  write_claims(out, message.claims);
  return out.take();
}

bool decode(std::span<const std::byte> payload, HelloMessage& message) {
  Reader in(payload);
  uint32_t version = 0;
  in.number(version);
  in.number(message.topology.nodes);
  in.number(message.topology.threads_per_node);
  in.number(message.topology.workers_max);
  in.number(message.topology.region_bytes);
  in.number(message.node);
  in.token(message.process.boot_id);
  in.number(message.process.pid);
  in.number(message.process.start_time);
  read_claims(in, message.claims);
  return in.ended_well() && version == kControlVersion;
}

ControlBytes encode(const HelloReply& message) {
  CHECK(message.kept.size() <= kClaimsMax);
  Writer out;
  out.number(message.node).clock(message.clock).number(static_cast<uint32_t>(message.kept.size()));
  for (const bool kept : message.kept) out.number(static_cast<uint8_t>(kept));
  return out.take();
}

bool decode(std::span<const std::byte> payload, HelloReply& message) {
  Reader in(payload);
  in.number(message.node);
  in.clock(message.clock);
  message.kept.assign(in.count(kClaimsMax, 1), false);
  for (size_t i = 0; i < message.kept.size(); ++i) {
    uint8_t kept = 0;
    in.number(kept);
    if (kept > 1) in.fail();
    message.kept[i] = kept == 1;
  }
  return in.ended_well();
}

ControlBytes encode(const ClockReading& message) {
  Writer out;
  return out.clock(message).take();
}

bool decode(std::span<const std::byte> payload, ClockReading& message) {
  Reader in(payload);
  in.clock(message);
  return in.ended_well();
}

ControlBytes encode(const TableMessage& message) {
  CHECK(message.entries.size() <= kTableEntriesMax);
  Writer out;
  out.number(message.version).number(static_cast<uint32_t>(message.entries.size()));
  for (const TableEntry& entry : message.entries) {
    out.number(entry.worker).number(entry.incarnation).token(entry.token);
  }
  return out.take();
}

bool decode(std::span<const std::byte> payload, TableMessage& message) {
  Reader in(payload);
  in.number(message.version);
  message.entries.resize(in.count(kTableEntriesMax, kClaimBytes));
  for (TableEntry& entry : message.entries) {
    in.number(entry.worker);
    in.number(entry.incarnation);
    in.token(entry.token);
  }
  return in.ended_well();
}

ControlBytes encode(const ExchangeMessage& message) {
  CHECK(message.bytes.size() <= Membership::kMessageBytesMax);
  Writer out;
  return out.number(message.topic).raw(message.bytes).take();
}

bool decode(std::span<const std::byte> payload, ExchangeMessage& message) {
  Reader in(payload);
  in.number(message.topic);
  message.bytes = in.remainder();
  return in.ended_well() && message.bytes.size() <= Membership::kMessageBytesMax;
}

ControlBytes encode(const ClaimProof& message) {
  Writer out;
  return out.claim(message).take();
}

bool decode(std::span<const std::byte> payload, ClaimProof& message) {
  Reader in(payload);
  in.claim(message);
  return in.ended_well();
}

ControlBytes encode(const std::vector<ClaimProof>& message) {
  Writer out;
  write_claims(out, message);
  return out.take();
}

bool decode(std::span<const std::byte> payload, std::vector<ClaimProof>& message) {
  Reader in(payload);
  read_claims(in, message);
  return in.ended_well();
}

ControlBytes encode(const Membership::Claim& message) {
  Writer out;
  return out.number(message.worker).number(message.incarnation).take();
}

bool decode(std::span<const std::byte> payload, Membership::Claim& message) {
  Reader in(payload);
  in.number(message.worker);
  in.number(message.incarnation);
  return in.ended_well();
}

ControlBytes encode_number(uint64_t number) {
  Writer out;
  return out.number(number).take();
}

bool decode_number(std::span<const std::byte> payload, uint64_t* number) {
  Reader in(payload);
  in.number(*number);
  return in.ended_well();
}

ControlBytes encode_error(const Status& status) {
  CHECK(!status.ok());
  const std::string text = status.message().substr(0, kErrorTextBytesMax);
  Writer out;
  return out.number(static_cast<uint8_t>(status.code()))
      .raw(std::as_bytes(std::span<const char>(text)))
      .take();
}

Status decode_error(std::span<const std::byte> payload) {
  Reader in(payload);
  uint8_t code = 0;
  in.number(code);
  const std::span<const std::byte> rest = in.remainder();
  if (!in.ended_well() || code == 0 || code > static_cast<uint8_t>(Code::kSystem) ||
      rest.size() > kErrorTextBytesMax) {
    return Status(Code::kCorrupt, "a member's error does not parse");
  }
  // What another process says may end in a log: nothing but text.
  std::string text(reinterpret_cast<const char*>(rest.data()), rest.size());
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return Status(static_cast<Code>(code), text);
}

}  // namespace rdmacc
