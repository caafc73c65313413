// What members of a cluster that spans hosts say to each other, as any bytes: messages of the
// control channel, frames of tcp's data connections (verbs that pass are carried out on a region
// that ends where it says), config files. The first byte says which.
#include <vector>

#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/control_wire.h"
#include "rdma/fabric/cpu_verbs.h"
#include "rdma/tcp/tcp_wire.h"

namespace rdmacc {
namespace {

using Bytes = std::span<const std::byte>;
using Parser = void (*)(Bytes);

constexpr uint64_t kRegionBytes = 4096;

// What parses is written, and that parses into the same bytes once more.
template <typename Message>
void control_message(Bytes bytes) {
  Message first{};
  if (!decode(bytes, first)) return;
  const ControlBytes once = encode(first);
  Message second{};
  CHECK(decode(once, second));
  CHECK(encode(second) == once);
}

void control_number(Bytes bytes) {
  uint64_t number = 0;
  if (decode_number(bytes, &number)) CHECK(encode_number(number).size() == bytes.size());
}

void control_error(Bytes bytes) { CHECK(!decode_error(bytes).ok()); }

void control_frames(Bytes bytes) {
  bool malformed = false;
  while (const auto frame = next_control_frame(bytes, &malformed)) {
    CHECK(!malformed && frame->payload.size() == frame->header.bytes);
    bytes = bytes.subspan(sizeof(ControlHeader) + frame->payload.size());
  }
}

void carry_out(const TcpFrame& frame) {
  static std::vector<uint64_t> region(kRegionBytes / 8);
  std::vector<Verb> verbs(frame.header.verbs);
  size_t reply_bytes = 0;
  if (!read_tcp_chain(frame, kRegionBytes, verbs, &reply_bytes)) return;
  std::vector<uint64_t> reply(reply_bytes / 8);
  auto* next = reply.data();
  CpuVerbs cpu;
  for (Verb& verb : verbs) {
    if (verb.opcode != Opcode::kWrite) {
      verb.local = next;
      next += verb.bytes / 8;
    }
    cpu.carry_out(verb, reinterpret_cast<std::byte*>(region.data()));
  }
  CHECK(next == reply.data() + reply.size());
}

void tcp_frames(Bytes bytes) {
  // As a connection keeps them: aligned, and not a byte behind them.
  std::vector<uint64_t> words(bytes.size() / 8 + 1);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  Bytes rest = std::as_bytes(std::span(words)).first(bytes.size());
  bool malformed = false;
  while (const auto frame = next_tcp_frame(rest, &malformed)) {
    CHECK(!malformed && frame->frame_bytes <= rest.size() && frame->frame_bytes % 8 == 0);
    if (frame->header.type == TcpFrameType::kChain) carry_out(*frame);
    rest = rest.subspan(frame->frame_bytes);
  }
}

void config_file(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<ClusterConfig> config = parse_cluster_config(text, ".");
  CHECK(!config.ok() || check_cluster_config(config.value()).ok());
}

constexpr Parser kParsers[] = {
    control_message<HelloMessage>,
    control_message<HelloReply>,
    control_message<ClockReading>,
    control_message<TableMessage>,
    control_message<ExchangeMessage>,
    control_message<ClaimProof>,
    control_message<std::vector<ClaimProof>>,
    control_message<Membership::Claim>,
    control_number,
    control_error,
    control_frames,
    tcp_frames,
    config_file,
};

}  // namespace
}  // namespace rdmacc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  rdmacc::kParsers[data[0] % std::size(rdmacc::kParsers)](bytes.subspan(1));
  return 0;
}
