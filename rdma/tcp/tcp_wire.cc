#include "rdma/tcp/tcp_wire.h"

namespace rdmacc {

std::optional<TcpFrame> next_tcp_frame(std::span<const std::byte> arrived, bool* malformed) {
  *malformed = false;
  TcpFrame frame;
  if (arrived.size() < sizeof(frame.header)) return std::nullopt;
  std::memcpy(&frame.header, arrived.data(), sizeof(frame.header));
  const TcpFrameHeader& header = frame.header;
  switch (header.type) {
    case TcpFrameType::kChain:
      *malformed = header.bytes > kTcpFrameBytesMax || header.verbs == 0 ||
                   header.verbs > kTcpVerbsMax || (header.flags & ~kTcpWantsReply) != 0 ||
                   header.bytes % 8 != 0;
      break;
    case TcpFrameType::kReply:
      *malformed = header.bytes > kTcpFrameBytesMax || header.verbs != 0 || header.flags != 0 ||
                   header.bytes % 8 != 0;
      break;
    case TcpFrameType::kDatagram:
      *malformed = header.bytes == 0 || header.bytes > kTcpDatagramBytesMax || header.verbs != 0 ||
                   header.flags != 0 || header.sequence != 0;
      break;
    default:
      *malformed = true;
  }
  if (*malformed) return std::nullopt;
  frame.frame_bytes = sizeof(header) + tcp_filled(header.bytes);
  if (arrived.size() < frame.frame_bytes) return std::nullopt;
  frame.payload = arrived.subspan(sizeof(header), header.bytes);
  return frame;
}

bool read_tcp_chain(const TcpFrame& frame, uint64_t region_bytes, std::span<Verb> verbs,
                    size_t* reply_bytes) {
  const size_t count = frame.header.verbs;
  CHECK(frame.payload.size() == frame.header.bytes);
  CHECK(frame.header.type == TcpFrameType::kChain && count <= verbs.size());
  if (frame.payload.size() < count * sizeof(TcpVerb)) return false;
  std::span<const std::byte> written = frame.payload.subspan(count * sizeof(TcpVerb));
  *reply_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    TcpVerb sent;
    std::memcpy(&sent, frame.payload.data() + i * sizeof(TcpVerb), sizeof(sent));
    if (sent.reserved != 0 || sent.order > WordOrder::kDescending || sent.bytes == 0 ||
        sent.bytes % 8 != 0 || sent.bytes > kTcpPieceBytesMax || sent.offset % 8 != 0 ||
        sent.bytes > region_bytes || sent.offset > region_bytes - sent.bytes) {
      return false;
    }
    verbs[i] =
        Verb{sent.opcode, sent.order, sent.bytes, sent.offset, nullptr, sent.compare, sent.operand};
    switch (sent.opcode) {
      case Opcode::kWrite:
        if (written.size() < sent.bytes) return false;
        verbs[i].local = const_cast<std::byte*>(written.data());
        written = written.subspan(sent.bytes);
        break;
      case Opcode::kCompareSwap:
      case Opcode::kFetchAdd:
        if (sent.bytes != 8) return false;
        *reply_bytes += 8;
        break;
      case Opcode::kRead:
        *reply_bytes += sent.bytes;
        break;
      default:
        return false;
    }
  }
  return written.empty() && *reply_bytes <= kTcpSegmentBytesMax;
}

SecretKey tcp_proof_of_node(const SecretKey& key, const TcpHello& hello, const RandomToken& nonce) {
  return keyed_digest(key, "rdmacc tcp node", bytes_of(hello), bytes_of(nonce));
}

SecretKey tcp_proof_of_dialler(const SecretKey& key, const TcpHello& hello,
                               const RandomToken& nonce) {
  return keyed_digest(key, "rdmacc tcp dialler", bytes_of(hello), bytes_of(nonce));
}

}  // namespace rdmacc
