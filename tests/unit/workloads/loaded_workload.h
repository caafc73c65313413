#pragma once
#include <gtest/gtest.h>

#include "engine/check/history_file.h"
#include "engine/workloads/registry.h"
#include "tests/unit/engine/sim_engine.h"
#include "tests/workloads/test_workloads.h"

namespace rdmacc {

// A workload on a simulated cluster, loaded, with one coordinator whose history is kept.
class LoadedWorkload {
 public:
  static constexpr NodeId kNodes = 3;

  LoadedWorkload(std::string_view name, std::string_view settings,
                 const TxnOptions& options = TxnOptions())
      : options_(options),
        engine_(1, 0, kNodes, 256ull << 20),
        coordinator_(engine_.add_coordinator()) {
    Result<std::unique_ptr<Workload>> made =
        make_workload(name, settings, WorkloadCluster{kNodes, true});
    CHECK(made.ok());
    workload_ = std::move(*made);
    with_session([this](Session& session) {
      ok(workload_->create_tables(session));
      const uint64_t parts = workload_->load_parts();
      for (uint64_t part = 0; part < parts; ++part) {
        ok(workload_->load(session, options_, part, parts));
      }
    });
    coordinator_.set_history(&history_);
  }
  ~LoadedWorkload() { coordinator_.set_history(nullptr); }

  Workload& workload() { return *workload_; }
  TableId table(size_t number) { return workload_->tables()[number]; }
  const HistoryMemory& history() const { return history_; }
  int64_t delta() const { return delta_; }

  // Runs it to its end, which must be ok; gives what it did.
  TxnEffect run(const TxnInputs& inputs) {
    TxnEffect effect;
    history_.clear();
    with_session(
        [&](Session& session) { ok(workload_->attempt(session, TxnOptions(), inputs, effect)); });
    delta_ += effect.delta;
    return effect;
  }

  // As the options say, again until it meets no conflict.
  void run_to_end(const TxnInputs& inputs) {
    with_session([&](Session& session) {
      TxnEffect effect;
      ok(retry_aborted(session.scheduler(),
                       [&] { return workload_->attempt(session, options_, inputs, effect); }));
      delta_ += effect.delta;
    });
  }
  // False: the workload does not know the keys.
  bool survey(const TxnInputs& inputs, KeyDeclaration& keys) {
    bool known = false;
    with_session(
        [&](Session& session) { ok(workload_->survey(session, options_, inputs, keys, known)); });
    return known;
  }
  // What the workload's check finds wrong.
  std::string violation(int64_t more = 0) {
    std::string found;
    with_session([&](Session& session) {
      ok(workload_->check(session, TxnOptions(), delta_ + more, found));
    });
    return found;
  }

  // The body in a transaction that commits.
  void in_transaction(const std::function<Status(Session&)>& body) {
    with_session([&](Session& session) {
      ok(session.begin(TxnOptions()));
      ok(body(session));
      ok(session.commit());
    });
  }

  // The row; empty when there is none.
  std::string row(TableId table, std::string_view key) {
    std::string row;
    with_session([&](Session& session) {
      RowView view;
      ok(session.begin(TxnOptions()));
      ok(session.get(table, key, view));
      row = view.row;
      ok(session.commit());
    });
    return row;
  }
  void for_each(TableId table, const std::function<void(const RowView&)>& visit) {
    with_session([&](Session& session) {
      ok(session.begin(TxnOptions()));
      ok(for_each_row(session, table, [&visit](const RowView& view) {
        visit(view);
        return Status();
      }));
      ok(session.commit());
    });
  }
  // Makes the row what is given, without asking the workload; empty: removes it.
  void overwrite(TableId table, std::string_view key, std::string_view row) {
    with_session([&](Session& session) {
      ok(session.begin(TxnOptions()));
      const Status put = row.empty() ? session.remove(table, key) : session.put(table, key, row);
      ok(put.code() == Code::kNotFound ? session.insert(table, key, row) : put);
      ok(session.commit());
    });
  }

 private:
  static void ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }

  void with_session(const std::function<void(Session&)>& body) {
    engine_.run(coordinator_, [&] {
      Session session(coordinator_);
      body(session);
      session.abort();
    });
  }

  const TxnOptions options_;
  SimEngine engine_;
  Coordinator& coordinator_;
  std::unique_ptr<Workload> workload_;
  HistoryMemory history_;
  int64_t delta_ = 0;
};

}  // namespace rdmacc
