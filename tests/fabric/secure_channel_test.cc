// A connection's TLS, without a cluster around it.
#include "rdma/bootstrap/secure_channel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

namespace rdmacc {
namespace {

// SIGPIPE would end a program that has not thought of it.
TEST(SecureChannelTest, WritesToAPeerThatHasGoneAsToAnyOther) {
  ASSERT_EQ(SIG_DFL, signal(SIGPIPE, SIG_DFL));
  auto context = TlsContext::make("cluster", SecretKey{});
  ASSERT_TRUE(context.ok()) << context.status().to_string();
  int ends[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
  SecureChannel channel(**context, Descriptor(ends[0]), /*accepted=*/false, "a peer");
  Descriptor(ends[1]).reset();
  channel.send(ControlType::kHello, 1, {});
  const auto nothing = [](const ControlFrame&) { ADD_FAILURE() << "nothing was sent"; };
  for (int i = 0; i < 10 && channel.state() != SecureChannel::State::kClosed; ++i) {
    channel.drive(nothing);
  }
  EXPECT_EQ(SecureChannel::State::kClosed, channel.state());
  EXPECT_EQ(Code::kUnavailable, channel.reason().code());
}

}  // namespace
}  // namespace rdmacc
