// Settings of workloads as names and numbers, and workloads made from them.
#include "engine/workloads/settings.h"

#include <gtest/gtest.h>

#include "engine/workloads/registry.h"

namespace rdmacc {
namespace {

constexpr std::array kSettings = {
    WorkloadSetting{"size", "length", "how large", 2, 100, 10},
    WorkloadSetting{"skew", nullptr, "how skewed", 0, 0.9, 0, true},
};

TEST(WorkloadSettings, AreAtTheirDefaultsAtFirst) {
  const WorkloadSettings settings(kSettings);
  EXPECT_EQ(settings.number("size"), 10u);
  EXPECT_EQ(settings.fraction("skew"), 0);
  EXPECT_EQ(settings.to_string(), "size=10,skew=0");
}

TEST(WorkloadSettings, AreReadBackFromTheirText) {
  WorkloadSettings settings(kSettings), other(kSettings);
  ASSERT_TRUE(settings.parse("length=33,skew=0.25").ok());
  EXPECT_EQ(settings.number("size"), 33u);
  ASSERT_TRUE(other.parse(settings.to_string()).ok());
  EXPECT_EQ(other.to_string(), "size=33,skew=0.25");
  EXPECT_TRUE(settings.parse("").ok());
}

TEST(WorkloadSettings, RefuseWithASentence) {
  WorkloadSettings settings(kSettings);
  for (const auto& [text, sentence] : std::vector<std::pair<const char*, const char*>>{
           {"size=1", "--size must be a whole number, 2 .. 100"},
           {"length=101", "--length must be a whole number, 2 .. 100"},
           {"size=2.5", "--size must be a whole number, 2 .. 100"},
           {"size=nan", "--size must be a whole number, 2 .. 100"},
           {"skew=1", "--skew must be 0 .. 0.9"},
           {"depth=3", "there is no setting \"depth\"; possible are size skew"},
           {"size", "\"size\" is not a setting=number"},
           {"size=", "\"size=\" is not a setting=number"},
           {"size=4x", "\"size=4x\" is not a setting=number"}}) {
    const Status status = settings.parse(text);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_EQ(status.message(), sentence);
  }
  EXPECT_EQ(settings.to_string(), "size=10,skew=0");
}

TEST(WorkloadRegistry, MakesEveryWorkloadByItsName) {
  for (const WorkloadKind* kind : workload_kinds()) {
    auto made = make_workload(kind->name, "", WorkloadCluster{2, true});
    ASSERT_TRUE(made.ok()) << kind->name << ": " << made.status().to_string();
    EXPECT_STREQ((*made)->name(), kind->name);
    EXPECT_EQ(WorkloadSettings(kind->settings).number("history"), 3u) << kind->name;
    for (const TableSpec& spec : (*made)->table_specs()) EXPECT_EQ(spec.history, 3u) << kind->name;
  }
}

TEST(WorkloadRegistry, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const char* name, const char* settings) {
    return make_workload(name, settings, WorkloadCluster{2, true}).status().message();
  };
  EXPECT_EQ(refusal("tpcb", ""), "there is no workload \"tpcb\"; possible are " + workload_names());
  EXPECT_EQ(refusal("smallbank", "records=10,hot-records=11"),
            "--hot-records must be at most --records");
  EXPECT_EQ(refusal("ycsb", "records=4,operations=5"), "--operations must be at most --records");
  EXPECT_EQ(refusal("ycsb", "zipf=0.5,hot-access=5"), "--zipf and --hot-access exclude each other");
  EXPECT_EQ(refusal("ycsb", "hot-records=5"), "--hot-records needs --hot-access");
  EXPECT_EQ(refusal("ycsb", "nodes-per-transaction=3"),
            "--nodes-per-transaction must be at most --nodes and at most --operations");
  EXPECT_EQ(refusal("ycsb", "nodes-per-transaction=2,records=100"),
            "--nodes-per-transaction needs at least 320 records");
}

}  // namespace
}  // namespace rdmacc
