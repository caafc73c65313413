#include "rdma/verbs/verbs_wire.h"

#include <gtest/gtest.h>

#include "rdma/base/random.h"

namespace rdmacc {
namespace {

VerbsRequest some_request() {
  VerbsRequest request;
  request.header.datagrams.incarnation = 1;
  request.queue_pairs = {{7, 8}, {9, 10}};
  return request;
}

VerbsAnswer some_answer() {
  VerbsAnswer answer;
  answer.queue_pairs = {{1, 2}};
  answer.domains = {{0, 4096, 3, 0}, {4096, 8192, 4, 0}};
  answer.threads = {{5, 6, 7}};
  return answer;
}

TEST(VerbsWire, MessagesComeBackAsTheyWere) {
  const auto request = VerbsRequest::decode(some_request().encode());
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(2u, request->queue_pairs.size());
  EXPECT_EQ(9u, request->queue_pairs[1].number);
  const auto answer = VerbsAnswer::decode(some_answer().encode());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(4u, answer->domains[1].key);
  EXPECT_EQ(6u, answer->threads[0].number);
}

TEST(VerbsWire, OnlyWholeMessagesAreTaken) {
  Membership::Bytes request = some_request().encode(), answer = some_answer().encode();
  for (size_t bytes = 0; bytes < request.size(); ++bytes) {
    EXPECT_FALSE(VerbsRequest::decode(std::span(request).first(bytes)).has_value()) << bytes;
  }
  for (size_t bytes = 0; bytes < answer.size(); ++bytes) {
    EXPECT_FALSE(VerbsAnswer::decode(std::span(answer).first(bytes)).has_value()) << bytes;
  }
  request.push_back(std::byte{0});
  EXPECT_FALSE(VerbsRequest::decode(request).has_value());
  answer.push_back(std::byte{0});
  EXPECT_FALSE(VerbsAnswer::decode(answer).has_value());
}

TEST(VerbsWire, AnyBytesAreRefusedOrBounded) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    Membership::Bytes bytes = i % 2 == 0 ? some_request().encode() : some_answer().encode();
    for (uint64_t n = 1 + random.below(4); n > 0; --n) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    }
    if (const auto request = VerbsRequest::decode(bytes)) {
      EXPECT_LE(request->queue_pairs.size(), kVerbsQueuePairsMax);
    }
    if (const auto answer = VerbsAnswer::decode(bytes)) {
      EXPECT_LE(answer->domains.size(), kVerbsDomainsMax);
    }
  }
}

TEST(VerbsWire, DomainsMustBeTheRegion) {
  VerbsAnswer answer = some_answer();
  EXPECT_TRUE(answer.covers(12288));
  EXPECT_FALSE(answer.covers(12287));
  EXPECT_FALSE(answer.covers(16384));
  answer.domains[1].offset = 4104;  // a gap
  EXPECT_FALSE(answer.covers(12288));
  answer.domains[1] = {4096, UINT64_MAX - 4095, 4, 0};
  EXPECT_FALSE(answer.covers(0));
  answer.domains.clear();
  EXPECT_FALSE(answer.covers(8));
}

}  // namespace
}  // namespace rdmacc
