#include "rdma/bootstrap/secure_channel.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>

#include "rdma/bootstrap/socket_bio.h"

namespace rdmacc {
namespace {

// Both of them 1.3 only; the key below is declared to belong to it.
constexpr unsigned char kCipherId[2] = {0x13, 0x02};  // TLS_AES_256_GCM_SHA384
constexpr char kCipherName[] = "TLS_AES_256_GCM_SHA384";
constexpr unsigned char kProtocol[] = {8, 'r', 'd', 'm', 'a', 'c', 'c', '/', '0' + kControlVersion};
constexpr size_t kReadBytes = 16 * 1024;

std::string last_error() {
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_REASON(error) == SSL_R_BINDER_DOES_NOT_VERIFY) return "it has another secret";
  if (ERR_GET_REASON(error) == SSL_R_NO_APPLICATION_PROTOCOL) return "it has another version";
  const char* text = error == 0 ? nullptr : ERR_reason_error_string(error);
  return text == nullptr ? "connection ended" : text;
}

int select_protocol(SSL*, const unsigned char** out, unsigned char* out_bytes,
                    const unsigned char* in, unsigned int in_bytes, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_bytes, kProtocol, sizeof(kProtocol), in, in_bytes) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::make(const std::string& cluster,
                                                     const SecretKey& key) {
  std::unique_ptr<TlsContext> made(new TlsContext);
  made->identity_ = "rdmacc/" + cluster;
  made->key_ = key;
  made->context_ = SSL_CTX_new(TLS_method());
  SSL_CTX* context = made->context_;
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, kCipherName) != 1 ||
      SSL_CTX_set_num_tickets(context, 0) != 1 || SSL_CTX_set_max_early_data(context, 0) != 1 ||
      SSL_CTX_set_alpn_protos(context, kProtocol, sizeof(kProtocol)) != 0) {
    return Status(Code::kSystem, "OpenSSL does not offer TLS 1.3: " + last_error());
  }
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // There are no certificates: without the key there is no session. Nothing to verify is left.
  SSL_CTX_set_session_id_context(context, kProtocol, sizeof(kProtocol));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_psk_use_session_callback(context, &TlsContext::use_session);
  SSL_CTX_set_psk_find_session_callback(context, &TlsContext::find_session);
  SSL_CTX_set_alpn_select_cb(context, &select_protocol, nullptr);
  SSL_CTX_set_app_data(context, made.get());
  return made;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
  OPENSSL_cleanse(key_.data(), key_.size());
}

SSL_SESSION* TlsContext::make_session() const {
  SSL* ssl = SSL_new(context_);
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = ssl == nullptr ? nullptr : SSL_CIPHER_find(ssl, kCipherId);
  const bool made = session != nullptr && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(session, key_.data(), key_.size()) == 1 &&
                    SSL_SESSION_set_cipher(session, cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
                    SSL_SESSION_set1_id_context(session, kProtocol, sizeof(kProtocol)) == 1;
  SSL_free(ssl);
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int TlsContext::use_session(SSL* ssl, const EVP_MD*, const unsigned char** identity,
                            size_t* identity_bytes, SSL_SESSION** session) {
  const auto* self = static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  *session = self->make_session();
  if (*session == nullptr) return 0;
  *identity = reinterpret_cast<const unsigned char*>(self->identity_.data());
  *identity_bytes = self->identity_.size();
  return 1;
}

int TlsContext::find_session(SSL* ssl, const unsigned char* identity, size_t identity_bytes,
                             SSL_SESSION** session) {
  const auto* self = static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  *session = nullptr;
  const std::string_view given(reinterpret_cast<const char*>(identity), identity_bytes);
  if (given != self->identity_) {  // no key for it: the handshake ends
    static_cast<SecureChannel*>(SSL_get_app_data(ssl))->hint_ = "it asks for another cluster";
    return 1;
  }
  *session = self->make_session();
  return *session != nullptr ? 1 : 0;
}

SecureChannel::SecureChannel(TlsContext& context, Descriptor socket, bool accepted,
                             std::string peer)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      state_(accepted ? State::kHandshaking : State::kConnecting),
      ssl_(SSL_new(context.context_)) {
  BIO* bio = ssl_ == nullptr ? nullptr : make_socket_bio(socket_.get());
  if (bio == nullptr) {
    close(Status(Code::kSystem, "OpenSSL: " + last_error()));
    return;
  }
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  accepted ? SSL_set_accept_state(ssl_) : SSL_set_connect_state(ssl_);
}

SecureChannel::~SecureChannel() {
  close(Status(Code::kUnavailable, "closed"));
  SSL_free(ssl_);
}

void SecureChannel::close(Status reason) {
  if (state_ == State::kClosed) return;
  ERR_clear_error();
  state_ = State::kClosed;
  reason_ = std::move(reason);
  socket_.reset();
}

bool SecureChannel::wants_write() const {
  if (state_ == State::kConnecting) return true;
  if (state_ == State::kHandshaking) return handshake_wants_write_;
  return state_ == State::kOpen && out_start_ < out_.size();
}

void SecureChannel::send(ControlType type, uint32_t request, std::span<const std::byte> payload) {
  if (state_ == State::kClosed) return;
  if (out_.size() - out_start_ > kOutBytesMax) {
    return close(Status(Code::kUnavailable, "it does not read what it is sent"));
  }
  append_control_frame(out_, type, request, payload);
}

void SecureChannel::fail(const char* what, int result) {
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_ZERO_RETURN) return close(Status(Code::kUnavailable, "it left"));
  // From this number on reasons are alerts of the peer. It does not say what it dislikes.
  if (state_ == State::kHandshaking &&
      ERR_GET_REASON(ERR_peek_last_error()) >= SSL_AD_REASON_OFFSET) {
    return close(
        Status(Code::kUnavailable, "it refuses us: another secret, cluster name or version"));
  }
  const std::string why = hint_ != nullptr ? hint_ : last_error();
  close(Status(Code::kUnavailable, std::string(what) + ": " + why));
}

void SecureChannel::handshake() {
  CHECK(state_ == State::kHandshaking && ssl_ != nullptr);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  handshake_wants_write_ = false;
  if (result != 1) {
    const int error = SSL_get_error(ssl_, result);
    handshake_wants_write_ = error == SSL_ERROR_WANT_WRITE;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) fail("handshake", result);
    return;
  }
  const unsigned char* protocol = nullptr;
  unsigned int protocol_bytes = 0;
  SSL_get0_alpn_selected(ssl_, &protocol, &protocol_bytes);
  // What the settings say has to have come about; anything else would be a fault of theirs.
  if (SSL_version(ssl_) != TLS1_3_VERSION || SSL_session_reused(ssl_) != 1 ||
      std::string_view(reinterpret_cast<const char*>(protocol), protocol_bytes) !=
          std::string_view(reinterpret_cast<const char*>(kProtocol + 1), kProtocol[0])) {
    return close(Status(Code::kInvalidArgument, "it has another version, or no key"));
  }
  state_ = State::kOpen;
  was_open_ = true;
}

bool SecureChannel::read_some() {
  bool any = false;
  for (int i = 0; i < kReadsPerDrive && state_ == State::kOpen; ++i) {
    const size_t before = in_.size();
    in_.resize(before + kReadBytes);
    size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_, in_.data() + before, kReadBytes, &got);
    in_.resize(before + got);
    if (result == 1) {
      any = true;
      // A frame is handed over before more than one of the longest could gather here.
      if (in_.size() > 2 * kControlPayloadBytesMax) break;
      continue;
    }
    const int error = SSL_get_error(ssl_, result);
    ended_ = error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
    if (ended_) end_result_ = result;
    break;
  }
  return any;
}

bool SecureChannel::write_some() {
  CHECK(out_start_ <= out_.size());
  bool any = false;
  while (state_ == State::kOpen && out_start_ < out_.size()) {
    size_t sent = 0;
    ERR_clear_error();
    const int result =
        SSL_write_ex(ssl_, out_.data() + out_start_, out_.size() - out_start_, &sent);
    if (result != 1) {
      const int error = SSL_get_error(ssl_, result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) fail("write", result);
      break;
    }
    out_start_ += sent;
    any = true;
  }
  if (out_start_ == out_.size()) {
    out_.clear();
    out_start_ = 0;
  }
  return any;
}

bool SecureChannel::drive(const FrameHandler& on_frame) {
  if (state_ == State::kClosed) return false;
  CHECK(!driving_);
  driving_ = true;
  const bool any = drive_once(on_frame);
  driving_ = false;
  return any;
}

bool SecureChannel::drive_once(const FrameHandler& on_frame) {
  const State before = state_;
  if (state_ == State::kConnecting) {
    const Status outcome = connect_outcome(socket_);
    if (!outcome.ok()) {
      close(outcome);
      return true;
    }
    state_ = State::kHandshaking;
  }
  if (state_ == State::kHandshaking) handshake();
  bool any = write_some();
  any |= read_some();
  size_t used = 0;
  bool malformed = false;
  while (state_ == State::kOpen) {
    const auto frame =
        next_control_frame(std::span<const std::byte>(in_).subspan(used), &malformed);
    if (malformed) close(Status(Code::kCorrupt, "what it says does not parse"));
    if (!frame) break;
    used += sizeof(ControlHeader) + frame->payload.size();
    on_frame(*frame);
    any = true;
  }
  CHECK(used <= in_.size());
  in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(used));
  if (ended_ && state_ == State::kOpen) fail("read", end_result_);  // its last words came first
  any |= write_some();                                              // answers
  return any || state_ != before;
}

}  // namespace rdmacc
