#include "rdma/bootstrap/cluster_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric_harness.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/bootstrap/loopback_files.h"

// A cluster of this host as a server makes it, and a process that looks at it without being a
// worker of it.

namespace rdmacc {
namespace {

constexpr int kStepsMax = 2'000;
constexpr useconds_t kStepUs = 5'000;

class Watch : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(LoopbackFiles::make(folder, name, topology).ok()); }
  void TearDown() override {
    if (chmod(folder.c_str(), 0700) == 0) LoopbackFiles::remove(folder);
  }
  ClusterConfig config() const {
    Result<ClusterConfig> read = read_cluster_config(LoopbackFiles::config_path(folder));
    return read.ok() ? std::move(*read) : ClusterConfig{};
  }
  static std::unique_ptr<Membership> start(const ClusterConfig& config, NodeId node) {
    Result<std::unique_ptr<Membership>> member = Membership::open_as_node(config, node);
    return member.ok() ? std::move(*member) : nullptr;
  }
  static bool sees(ClusterWatch& watch, NodeId node, bool answers) {
    for (int i = 0; i < kStepsMax; ++i) {
      watch.step();
      if (watch.node(node).known && watch.node(node).answers == answers) return true;
      usleep(kStepUs);
    }
    return false;
  }

  const std::string name = "watch_" + std::to_string(getpid());
  const std::string folder = testing::TempDir() + name;
  const Topology topology{
      .nodes = 2, .threads_per_node = 1, .workers_max = 8, .region_bytes = 1 << 20};
};

TEST_F(Watch, FilesOfAClusterArePrivateAndNew) {
  struct stat seen;
  ASSERT_EQ(0, stat(folder.c_str(), &seen));
  EXPECT_EQ(0700u, seen.st_mode & 0777);
  const ClusterConfig first = config();
  ASSERT_EQ(2u, first.nodes.size());
  EXPECT_EQ("127.0.0.1", first.nodes[0].host);
  EXPECT_NE(first.nodes[0].port, first.nodes[1].port);
  ASSERT_EQ(0, stat(first.secret_file.c_str(), &seen));
  EXPECT_EQ(0600u, seen.st_mode & 0777);
  EXPECT_EQ(8, first.topology.workers_max);
  EXPECT_EQ(1u << 20, first.topology.region_bytes);

  ASSERT_TRUE(LoopbackFiles::make(folder, name, topology).ok());  // replaces them
  LoopbackFiles::remove(folder);
  EXPECT_NE(0, access(folder.c_str(), F_OK));
}

TEST_F(Watch, AFolderThatOthersMayEnterIsRefused) {
  ASSERT_EQ(0, chmod(folder.c_str(), 0755));
  EXPECT_EQ(Code::kInvalidArgument, LoopbackFiles::make(folder, name, topology).code());
}

TEST_F(Watch, NodesComeAndGo) {
  const ClusterConfig members = config();
  EXPECT_FALSE(Membership::exists(members));
  auto watch = std::move(*ClusterWatch::open(members));
  EXPECT_TRUE(sees(*watch, 0, false));
  EXPECT_NE("", watch->node(0).why);
  EXPECT_EQ(0u, watch->memory_id());

  auto node_0 = start(members, 0);
  auto node_1 = start(members, 1);
  ASSERT_TRUE(node_0 != nullptr && node_1 != nullptr);
  EXPECT_TRUE(Membership::exists(members));
  EXPECT_TRUE(sees(*watch, 0, true));
  EXPECT_TRUE(sees(*watch, 1, true));
  const uint64_t memory = watch->memory_id();
  EXPECT_NE(0u, memory);

  node_1.reset();
  EXPECT_TRUE(sees(*watch, 1, false));
  EXPECT_TRUE(watch->node(0).answers);

  // On the memory that it had, node 0 is the same one.
  node_0.reset();
  EXPECT_TRUE(sees(*watch, 0, false));
  node_0 = start(members, 0);
  ASSERT_NE(nullptr, node_0);
  EXPECT_TRUE(sees(*watch, 0, true));
  EXPECT_EQ(memory, watch->memory_id());

  node_0.reset();
  EXPECT_TRUE(sees(*watch, 0, false));
  Membership::destroy(members);
  EXPECT_FALSE(Membership::exists(members));
  node_0 = start(members, 0);
  ASSERT_NE(nullptr, node_0);
  EXPECT_TRUE(sees(*watch, 0, true));
  EXPECT_NE(memory, watch->memory_id());
  node_0.reset();
  Membership::destroy(members);
}

TEST_F(Watch, AClaimIsInterrupted) {
  ClusterConfig members = config();
  int asked = 0;
  members.interrupted = [&asked] { return ++asked > 1; };
  auto member = std::move(*Membership::open(members));
  EXPECT_EQ(Code::kUnavailable, member->claim().status().code());  // no node is there
  EXPECT_GT(asked, 1);
  EXPECT_LT(asked, 10);  // it was not asked for as long as a claim may wait
}

}  // namespace
}  // namespace rdmacc
