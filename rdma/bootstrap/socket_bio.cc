#include "rdma/bootstrap/socket_bio.h"

#include <sys/socket.h>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

int send_some(BIO* bio, const char* bytes, int count) {
  const int fd = static_cast<int>(BIO_get_fd(bio, nullptr));
  BIO_clear_retry_flags(bio);
  const auto sent = static_cast<int>(send(fd, bytes, static_cast<size_t>(count), MSG_NOSIGNAL));
  if (sent <= 0 && BIO_sock_should_retry(sent) != 0) BIO_set_retry_write(bio);
  return sent;
}

// OpenSSL's, but for the writing.
BIO_METHOD* make_method() {
  const BIO_METHOD* plain = BIO_s_socket();
  BIO_METHOD* method = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
  CHECK(method != nullptr);
  BIO_meth_set_read(method, BIO_meth_get_read(plain));
  BIO_meth_set_ctrl(method, BIO_meth_get_ctrl(plain));
  BIO_meth_set_create(method, BIO_meth_get_create(plain));
  BIO_meth_set_destroy(method, BIO_meth_get_destroy(plain));
  BIO_meth_set_write(method, send_some);
  return method;
}

}  // namespace

BIO* make_socket_bio(int fd) {
  static const BIO_METHOD* const method = make_method();
  BIO* bio = BIO_new(method);
  if (bio != nullptr) BIO_set_fd(bio, fd, BIO_NOCLOSE);
  return bio;
}

}  // namespace rdmacc
