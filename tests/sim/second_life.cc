// What follows on a run that was sound: the same cluster, after its nodes were started again or its
// tables were dropped, must be as good as a new one.
#include <algorithm>

#include "engine/protocols/registry.h"
#include "engine/workloads/settings.h"
#include "tests/sim/acknowledged_rows.h"
#include "tests/sim/second_life/lone_index.h"
#include "tests/sim/second_life/lone_session.h"
#include "tests/sim/second_life/splits_due.h"
#include "tests/sim/sim_run.h"

namespace rdmacc {
namespace {

constexpr uint64_t kUntilFreeUs =
    500'000;  // virtual: epochs pass, and what waits for them is freed
constexpr uint64_t kUntilSplitUs = 10'000;
constexpr uint64_t kBackgroundUs = 300'000;
constexpr uint32_t kLooksMax = 40;
constexpr uint32_t kTransactionsAfter = 4;
constexpr uint32_t kLoneIndexNumber = 89;

}  // namespace

Status SimRun::live_again() {
  if (strikes_ != nullptr) strikes_->stop();
  if (scenario_.drops_after) RDMACC_RETURN_IF_ERROR(drop_tables());
  if (scenario_.restarts_after) RDMACC_RETURN_IF_ERROR(restart_nodes());
  if (scenario_.drops_after) RDMACC_RETURN_IF_ERROR(make_tables_again());
  if (scenario_.drops_after || scenario_.restarts_after) {
    RDMACC_RETURN_IF_ERROR(run_clients_again());
    RDMACC_RETURN_IF_ERROR(check_at_rest());
  }
  return check_alone();
}

// And nothing of them is left.
Status SimRun::drop_tables() {
  Scheduler& scheduler = keeper_->worker().scheduler();
  const Status dropped = run_task(scheduler, [this] {
    Session session(*keeper_);
    for (const TableId table : workload_->tables()) {
      RDMACC_RETURN_IF_ERROR(session.drop_table(table));
    }
    if (door_ == nullptr) return Status();
    Result<TableMeta> visited = session.find_table(Door::visited_spec(door_->history()));
    door_->set_visited(kNoTable);
    return visited.ok() ? session.drop_table(visited->id) : Status();
  });
  RDMACC_RETURN_IF_ERROR(dropped);
  uint64_t used = 0;
  for (uint32_t look = 0; look < kLooksMax; ++look) {
    const auto wait = [&scheduler] {
      scheduler.sleep_for(kUntilFreeUs);
      return Status();
    };
    RDMACC_RETURN_IF_ERROR(run_task(scheduler, wait));
    used = 0;
    for (const auto& threads : nodes_) used += threads[0]->storage()->statistics().used_bytes;
    if (used == 0 || !loses_nothing()) return Status();
  }
  return Status(Code::kCorrupt,
                "all tables are dropped, and " + std::to_string(used) + " bytes are in use");
}

Status SimRun::make_tables_again() {
  delta_ = 0;
  return run_task(keeper_->worker().scheduler(), [this] {
    Session session(*keeper_);
    RDMACC_RETURN_IF_ERROR(workload_->create_tables(session));
    return workload_->load(session, txn_, 0, 1);
  });
}

Status SimRun::restart_nodes() {
  for (NodeId node = 0; node < topology_.nodes; ++node) close_node(node, /*kill=*/true);
  for (NodeId node = 0; node < topology_.nodes; ++node) RDMACC_RETURN_IF_ERROR(open_node(node));
  return Status();
}

// Some transactions more, of those that live; nothing dies any more.
Status SimRun::run_clients_again() {
  transactions_ = kTransactionsAfter;
  for (std::unique_ptr<Client>& client : clients_) {
    if (client->coordinator == nullptr) {
      Result<std::unique_ptr<Coordinator>> coordinator = open_coordinator();
      if (!coordinator.ok()) return coordinator.status();
      client->coordinator = std::move(*coordinator);
      client->running = 0;
    }
    start_client(*client);
  }
  const bool ended = run_until_clients_ended();
  RDMACC_RETURN_IF_ERROR(failure_);
  return ended ? Status() : Status(Code::kTimeout, "a second life: " + describe_hang());
}

// As if all left: what they keep for inserts is locked.
Status SimRun::finish_background() {
  const auto finish = [this](Coordinator& coordinator) {
    return run_task(coordinator.worker().scheduler(), [&coordinator] {
      coordinator.finish_background(kBackgroundUs);
      return Status();
    });
  };
  for (const std::unique_ptr<Client>& client : clients_) {
    if (client->coordinator != nullptr) RDMACC_RETURN_IF_ERROR(finish(*client->coordinator));
  }
  return finish(*keeper_);
}

// What chains have grown has been split.
Status SimRun::check_splits(NodeId node) {
  if (door_ != nullptr) return Status();
  NodeThread& thread = *nodes_[node][0];
  return run_task(thread.worker().scheduler(), [this, &thread] {
    const std::byte* region = thread.worker().endpoint().local_region();
    const RegionLayout layout(topology_);
    std::string due;
    for (uint32_t look = 0; look < kLooksMax; ++look) {
      for (const TableId table : workload_->tables()) {
        due = find_split_due(region, layout, table);
        if (!due.empty()) break;
      }
      if (due.empty()) return Status();
      thread.worker().scheduler().sleep_for(kUntilSplitUs);
    }
    return Status(Code::kCorrupt, due);
  });
}

// Where nothing is lost the nodes know how many rows they have. Tombstones have slots, too.
Status SimRun::check_counts() {
  // Readers that are counted, and no longer there, are looked for when one may have been lost.
  if (loses_nothing() && reader_count_sweeps_ != 0) {
    return Status(Code::kCorrupt, "shared locks were swept, and none was lost");
  }
  if (!loses_nothing() || rules_of(scenario_.protocol)->keeps_versions()) return Status();
  const AcknowledgedRows rows(settled_history());
  uint64_t expected = 0, counted = 0;
  for (const TableId table : workload_->tables()) expected += rows.live_rows(table);
  for (const auto& threads : nodes_) counted += threads[0]->storage()->statistics().rows;
  if (expected == counted) return Status();
  return Status(Code::kCorrupt, "there are " + std::to_string(expected) +
                                    " rows, and the nodes count " + std::to_string(counted));
}

Status SimRun::check_alone() {
  if (scenario_.lone_transactions == 0) return Status();
  std::string violation;
  // SUNDIAL writes rows that were locked as they are, which no history tells; the map judges.
  keeper_->set_history(nullptr);
  RDMACC_RETURN_IF_ERROR(run_task(keeper_->worker().scheduler(), [&, this] {
    Session session(*keeper_);
    LoneSession alone(session, txn_, workload_->tables()[0], scenario_.seed * 19 + 11);
    return alone.run(scenario_.lone_transactions, violation);
  }));
  if (!violation.empty()) return Status(Code::kCorrupt, violation);
  RDMACC_RETURN_IF_ERROR(check_index_alone());
  RDMACC_RETURN_IF_ERROR(finish_background());
  for (NodeId node = 0; node < topology_.nodes; ++node) RDMACC_RETURN_IF_ERROR(check_locks(node));
  return check_tables();
}

// Two coordinators take turns at an index of their own.
Status SimRun::check_index_alone() {
  TableId table = kNoTable;
  const auto make = [&, this] {
    Session session(*keeper_);
    Result<TableMeta> made =
        session.create_table(native_table(kLoneIndexNumber, kIndexRecordSize, kDefaultHistory));
    if (made.ok()) table = made->id;
    return made.status();
  };
  RDMACC_RETURN_IF_ERROR(run_task(keeper_->worker().scheduler(), make));
  std::vector<Coordinator*> turns{keeper_.get()};
  if (clients_.front()->coordinator != nullptr) {
    turns.push_back(clients_.front()->coordinator.get());
  }
  for (Coordinator* coordinator : turns) coordinator->set_history(nullptr);
  LoneIndex index(txn_, table, scenario_.seed * 23 + 1);
  for (uint32_t turn = 0; turn < 2 * scenario_.lone_transactions; ++turn) {
    Coordinator& coordinator = *turns[random_.below(turns.size())];
    RDMACC_RETURN_IF_ERROR(run_task(coordinator.worker().scheduler(), [&] {
      Session session(coordinator);
      return index.turn(session);
    }));
    if (!index.violation().empty()) return Status(Code::kCorrupt, index.violation());
  }
  return Status();
}

}  // namespace rdmacc
