#pragma once
#include <openssl/bio.h>

namespace rdmacc {

// What OpenSSL reads from and writes to, like its own for sockets, which writes with write(): to a
// peer that has gone that is SIGPIPE, the end of a program that has not thought of it. This one
// fails with EPIPE. The descriptor stays its owner's. nullptr: out of memory.
BIO* make_socket_bio(int fd);

}  // namespace rdmacc
