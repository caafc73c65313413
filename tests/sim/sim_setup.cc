// What a scenario's seed makes of a run before it begins: the cluster, its options, the workload.
#include "engine/storage/layout/lease_word.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/txn/transaction/ordered_events.h"
#include "engine/workloads/procedures.h"
#include "engine/workloads/smallbank.h"
#include "tests/sim/growing/heads.h"
#include "tests/sim/growing/loads.h"
#include "tests/sim/sim_run.h"
#include "tests/workloads/indexed.h"
#include "tests/workloads/mixed.h"
#include "tests/workloads/predicate.h"

namespace rdmacc {
namespace {

constexpr uint64_t kVersionsKeptUs = 100, kRecycleEveryUs = 1'000;
constexpr uint64_t kDoorMaintainUs = 200;
constexpr uint32_t kLateNsMax = 4'000'000;
constexpr uint32_t kClockErrorUsMax = kClockWidthUsMax / 2 + 10;  // some are off by too much
// A node looks every second at what it has found when it came back.
constexpr uint64_t kLingerNsMin = 4'000'000'000;
// While a node is away for minutes the others poll less often, or a run would do nothing else.
constexpr uint64_t kAwayUsLong = 1'000'000, kPollUsOfLong = 20'000, kLookUsOfLong = 200'000;
constexpr uint32_t kTallRecords = 200, kTallFillerBytes = 200;
constexpr uint32_t kFillersOfBurst = 40, kLongLookUs = 1'000;
constexpr uint32_t kLargeRunsPercent = 40, kLargePercent = 3, kVisitPercentOfMost = 70;

SimOptions fabric_options(const SimScenario& scenario) {
  Random random(scenario.seed ^ 0x5EED);
  SimOptions options;
  options.seed = scenario.seed;
  options.stall_percent = 1 + static_cast<uint32_t>(random.below(4));
  if (scenario.stall_percent != 0) options.stall_percent = scenario.stall_percent;
  if (scenario.late) options.stall_ns_max = kLateNsMax;
  options.loss_percent = scenario.loss_percent;
  options.duplicate_percent = scenario.duplicate_percent;
  options.cpu_reads = scenario.cpu_moves;
  options.one_by_one = scenario.one_by_one;
  options.dead_node_unreachable = scenario.unreachable;
  options.delays = scenario.delays;
  if (random.below(4) != 0) {
    options.clock_error_us = static_cast<uint32_t>(random.below(kClockErrorUsMax + 1));
  }
  return options;
}

}  // namespace

SimRun::SimRun(const SimScenario& scenario)
    : scenario_(scenario),
      random_(scenario.seed * 7 + 1),
      decider_(scenario.seed * 11 + 3, history_) {
  topology_.nodes = static_cast<NodeId>(2 + random_.below(2));
  topology_.threads_per_node = static_cast<uint16_t>(1 + random_.below(2));
  topology_.workers_max =
      static_cast<WorkerId>(topology_.node_workers() + scenario.coordinators + scenario.kills + 2);
  topology_.region_bytes = 64ull << 20;
  if (scenario.load == SimScenario::Load::kDoor) {
    if (scenario.tight) {
      topology_.region_bytes = region_bytes_min(topology_) + random_.below(8) * kPageBytes;
    }
    node_options_.maintain_every_us = kDoorMaintainUs;
    node_options_.structure = &ledger_;
  }
  if (scenario.strikes + scenario.cut_short > 0 || scenario.aimed) {
    Strikes::Counts counts{.in_changes = scenario.strikes, .nodes_in_rows = scenario.cut_short};
    if (scenario.aimed) {
      counts.coordinators_logged = scenario.kills;
      counts.nodes_logged = scenario.node_restarts;
    }
    strikes_ = std::make_unique<Strikes>(scenario.seed * 17 + 7, counts, topology_, &ledger_);
  }
  if (scenario.aim) {
    aimed_ = std::make_unique<AimedFaults>(*scenario.aim, scenario.seed * 19 + 11, topology_);
  }
  transactions_ = scenario.transactions;
  node_options_.resolve_every_us = 400;
  node_options_.drain_us_max = 5'000;
  // Half of the runs take old versions away as soon as they may.
  if (scenario.seed % 2 == 0) node_options_.keep_versions_us = kVersionsKeptUs;
  // And half of them make empty pages usable for anything again and again.
  if (scenario.seed / 2 % 2 == 0) node_options_.recycle_every_us = kRecycleEveryUs;
  if (scenario.away_us_max > kAwayUsLong) {
    node_options_.resolve_every_us = node_options_.maintain_every_us = kPollUsOfLong;
    decider_.look_every(kLookUsOfLong);
  }
  node_options_.order.observer = [this](const OrderedAt& at, const OrderedOutcome& outcome,
                                        bool effective) {
    // One that only asks whether what it has read belongs together may come before its commit.
    const bool asks = at.request->procedure == 0 && at.request->writes.empty();
    if (!effective || asks) return;
    Ordered& ordered = ordered_[at.request->ctts];
    ordered.stamp = at.stamp;
    if (at.request->procedure != 0) ordered.events = events_of_procedure(*at.request, outcome);
  };
  engine_options_.replicas = static_cast<uint32_t>(random_.below(topology_.nodes));
  // Another copy of what is damaged, once it is committed: with one replica the log of one node's
  // rows is on one node.
  if (scenario.aim && scenario.aim->role == FaultRole::kDamagedCopy) {
    const uint32_t least = scenario.aim->stage == FaultStage::kLog ? 1 : 2;
    engine_options_.replicas =
        std::max(engine_options_.replicas, std::min(least, topology_.nodes - 1u));
  }
  engine_options_.location_cache_entries = 64;
  // By the seed alone, and so are other draws what they were.
  constexpr SlotScanLimits kNever{UINT32_MAX, 0}, kEarly{0, UINT32_MAX};
  engine_options_.slot_scans = scenario.seed % 3 == 0 ? kNever : kEarly;
  node_options_.rules_of = engine_options_.rules_of = scenario.rules_of;
  txn_.protocol = scenario.protocol;
  txn_.lock_mode = scenario.lock_mode;
  txn_.plan = StagePlan(scenario.code);
  fabric_ = SimFabric::create(topology_, fabric_options(scenario));
  if (strikes_ != nullptr) strikes_->watch(*fabric_);
  if (aimed_ != nullptr) aimed_->watch(*fabric_);
  if (scenario.prepare) scenario.prepare(*fabric_);
  nodes_.resize(topology_.nodes);
  back_at_ns_.resize(topology_.nodes);
  if (scenario.die_at_end) linger_ns_ = kLingerNsMin + random_.below(kLingerNsMin);
  workload_ = make_workload();
  procedures_.add(procedure_number_of(*workload_), procedure_of(*workload_));
  node_options_.order.procedures = &procedures_;
}

std::unique_ptr<Workload> SimRun::make_workload() {
  switch (scenario_.load) {
    case SimScenario::Load::kMixed: {
      MixedOptions options;
      options.keys = 4 + static_cast<uint32_t>(random_.below(12));
      if (scenario_.keys != 0) options.keys = scenario_.keys;
      if (scenario_.history != 0) options.history = scenario_.history;
      options.read_only_percent = scenario_.read_only_percent.value_or(options.read_only_percent);
      return std::make_unique<Mixed>(options);
    }
    case SimScenario::Load::kBank: {
      SmallbankOptions options;
      options.accounts = 8;
      options.hot_accounts = 2;
      options.hot_access_percent = 30;
      options.transfers_only = loses_coordinators() || loses_nodes();
      return std::make_unique<Smallbank>(options);
    }
    case SimScenario::Load::kPredicate: {
      PredicateOptions options;
      options.quota = 1 + static_cast<uint32_t>(random_.below(3));
      options.pairs = 1 + static_cast<uint32_t>(random_.below(4));
      options.read_only_percent = scenario_.read_only_percent.value_or(options.read_only_percent);
      return std::make_unique<Predicate>(options);
    }
    case SimScenario::Load::kIndexed: {
      IndexedOptions options;
      options.records = 8 + static_cast<uint32_t>(random_.below(60));
      options.filler_bytes = static_cast<uint32_t>(random_.below(120));
      options.read_only_percent = scenario_.read_only_percent.value_or(options.read_only_percent);
      options.covers = scenario_.covers;
      options.sorted = options.records % 2 == 0;
      if (scenario_.tall) {
        options.records = kTallRecords;
        options.filler_bytes = kTallFillerBytes;
      }
      return std::make_unique<Indexed>(options);
    }
    case SimScenario::Load::kLoads: {
      LoadsOptions options;
      options.rows_max = 20 + static_cast<uint32_t>(random_.below(180));
      options.hot_groups = 1 + static_cast<uint32_t>(random_.below(HotKeys::kGroupsMax));
      options.deep_rows = scenario_.deep_rows;
      options.rows_at_once = scenario_.rows_at_once;
      return std::make_unique<Loads>(options);
    }
    case SimScenario::Load::kHeads: {
      HeadsOptions options;
      options.heads = 1 + static_cast<uint32_t>(random_.below(5));
      options.hot_groups = 1 + static_cast<uint32_t>(random_.below(3));
      options.fillers_max = 4 + static_cast<uint32_t>(random_.below(30));
      // Rows of few heads in one group, and looks in which it is split and a row is added.
      if (scenario_.fillers_percent < 100) {
        options.heads = 2 + static_cast<uint32_t>(random_.below(2));
        options.hot_groups = 1;
        options.fillers_max = kFillersOfBurst;
        options.fillers_percent = scenario_.fillers_percent;
        options.pause_us_max = kLongLookUs;
        options.head_first_percent = 0;
      }
      return std::make_unique<Heads>(options);
    }
    case SimScenario::Load::kFresh: {
      FreshTablesOptions options;
      options.cells = 2 + static_cast<uint32_t>(random_.below(4));
      options.hot_groups = 1 + static_cast<uint32_t>(random_.below(4));
      auto fresh = std::make_unique<FreshTables>(options);
      fresh_ = fresh.get();
      return fresh;
    }
    case SimScenario::Load::kOutside: {
      OutsideParentsOptions options;
      options.parents = 1 + static_cast<uint32_t>(random_.below(5));
      options.children = 2 + static_cast<uint32_t>(random_.below(30));
      options.hot_groups = 1 + static_cast<uint32_t>(random_.below(4));
      options.leaves_out = scenario_.outside_leaves_out;
      auto outside = std::make_unique<OutsideParents>(options);
      outside_ = outside.get();
      return outside;
    }
    case SimScenario::Load::kDoor: {
      DoorOptions options;
      options.keys = 4 + static_cast<uint32_t>(random_.below(30));
      options.hot_groups = 1 + static_cast<uint32_t>(random_.below(3));
      options.rows_max = 10 + static_cast<uint32_t>(random_.below(60));
      options.read_only_percent = scenario_.read_only_percent.value_or(options.read_only_percent);
      if (scenario_.history != 0) options.history = scenario_.history;
      // What a dead coordinator has logged is then read from several places.
      const bool drawn = scenario_.kills > 0 && random_.percent(kLargeRunsPercent);
      if (drawn || scenario_.long_rows) {
        options.large_percent = kLargePercent;
      }
      options.long_keys = scenario_.long_keys;
      options.scan_percent = scenario_.scan_percent;
      options.lock_percent = scenario_.lock_percent;
      if (scenario_.lock_percent != 0) options.keys = 2 + options.keys % 5;
      if (scenario_.visited) options.visit_percent = kVisitPercentOfMost;
      auto door = std::make_unique<Door>(options, &ledger_);
      door_ = door.get();
      decider_.observe(door_);
      return door;
    }
  }
  CHECK(false);
}

}  // namespace rdmacc
