// What follows on a run that was sound: the same cluster, after its nodes were started again or its
// tables were dropped, must be as good as a new one.
#include <algorithm>

#include "engine/protocols/registry.h"
#include "tests/sim/acknowledged_rows.h"
#include "tests/sim/lone_session.h"
#include "tests/sim/sim_run.h"

namespace rdmacc {
namespace {

constexpr uint64_t kUntilFreeUs =
    500'000;  // virtual: epochs pass, and what waits for them is freed
constexpr uint32_t kLooksMax = 40;
constexpr uint32_t kTransactionsAfter = 4;

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

// Where nothing is lost the nodes know how many rows they have. Tombstones have slots, too.
Status SimRun::check_counts() {
  if (!loses_nothing() || rules_of(scenario_.protocol)->reads_at_ctts) return Status();
  const AcknowledgedRows rows(settled_history());
  uint64_t expected = 0, counted = 0;
  for (const TableId table : workload_->tables()) expected += rows.live_rows(table);
  for (const auto& threads : nodes_) counted += threads[0]->storage()->statistics().rows;
  if (expected == counted) return Status();
  return Status(Code::kCorrupt, "there are " + std::to_string(expected) +
                                    " rows, and the nodes count " + std::to_string(counted));
}

Status SimRun::check_alone() {
  if (scenario_.lone_transactions == 0 || workload_->is_ordered_index(0)) return Status();
  std::string violation;
  // SUNDIAL writes rows that were locked as they are, which no history tells; the map judges.
  keeper_->set_history(nullptr);
  RDMACC_RETURN_IF_ERROR(run_task(keeper_->worker().scheduler(), [&, this] {
    Session session(*keeper_);
    LoneSession alone(session, txn_, workload_->tables()[0], scenario_.seed * 19 + 11);
    return alone.run(scenario_.lone_transactions, violation);
  }));
  if (!violation.empty()) return Status(Code::kCorrupt, violation);
  for (NodeId node = 0; node < topology_.nodes; ++node) RDMACC_RETURN_IF_ERROR(check_locks(node));
  return check_tables();
}

}  // namespace rdmacc
