#pragma once
#include <openssl/ssl.h>

#include <functional>
#include <memory>

#include "rdma/bootstrap/control_wire.h"
#include "rdma/bootstrap/socket.h"

namespace rdmacc {

// The TLS settings of a cluster: version 1.3 alone, no certificate, one external pre-shared key
// with an ephemeral key exchange on top, no resumption and no early data. So either side proves
// that it has the key, and nothing older or weaker can be agreed upon. The cluster's name is in
// the key's identity and in the key itself, our version in ALPN.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> make(const std::string& cluster, const SecretKey& key);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class SecureChannel;
  TlsContext() = default;
  SSL_SESSION* make_session() const;
  static int use_session(SSL* ssl, const EVP_MD* digest, const unsigned char** identity,
                         size_t* identity_bytes, SSL_SESSION** session);
  static int find_session(SSL* ssl, const unsigned char* identity, size_t identity_bytes,
                          SSL_SESSION** session);

  SSL_CTX* context_ = nullptr;
  std::string identity_;
  SecretKey key_{};
};

// One connection to another member, or to a process that claims to be one, until the handshake has
// shown it. Frames in both directions; nothing blocks. One thread at a time.
class SecureChannel {
 public:
  enum class State : uint8_t { kConnecting, kHandshaking, kOpen, kClosed };
  // May call send() and close(); must not destroy the channel.
  using FrameHandler = std::function<void(const ControlFrame& frame)>;

  // `context` outlives the channel.
  SecureChannel(TlsContext& context, Descriptor connected_or_connecting, bool accepted,
                std::string peer);
  ~SecureChannel();
  SecureChannel(const SecureChannel&) = delete;
  SecureChannel& operator=(const SecureChannel&) = delete;

  State state() const { return state_; }
  bool open() const { return state_ == State::kOpen; }
  int fd() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }
  // Bytes wait that the socket had no room for (or it is not connected yet).
  bool wants_write() const;
  // Why it was closed.
  const Status& reason() const { return reason_; }
  // Closed before the other side had shown that it has the key.
  bool refused() const { return state_ == State::kClosed && !was_open_; }

  // Queued until the handshake is over; drive() sends it.
  void send(ControlType type, uint32_t request, std::span<const std::byte> payload);
  // Goes on with whatever can go on and hands over what has arrived; true if anything happened.
  // Not from within `on_frame`.
  bool drive(const FrameHandler& on_frame);
  void close(Status reason);
  // Sends what is queued first, as far as the socket has room.
  void close_after_words(Status reason) {
    write_some();
    close(std::move(reason));
  }

 private:
  friend class TlsContext;
  bool drive_once(const FrameHandler& on_frame);
  void handshake();
  bool read_some();
  bool write_some();
  void fail(const char* what, int result);

  static constexpr size_t kOutBytesMax = 8 << 20;
  static constexpr int kReadsPerDrive = 16;

  Descriptor socket_;
  const std::string peer_;
  State state_;
  bool was_open_ = false;
  bool handshake_wants_write_ = false;
  SSL* ssl_ = nullptr;
  const char* hint_ = nullptr;  // more of a refusal than OpenSSL knows
  bool driving_ = false;
  bool ended_ = false;  // nothing will be read any more
  int end_result_ = 0;
  Status reason_;
  ControlBytes in_, out_;
  size_t out_start_ = 0;
};

}  // namespace rdmacc
