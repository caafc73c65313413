#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/storage/layout/page_word.h"
#include "engine/storage/layout/region_layout.h"
#include "tests/fabric/forwarding_endpoint.h"
#include "tests/unit/engine/sim_engine.h"

// Sessions under OCC whose scans go by slots, at one node of which tests see each verb.

namespace rdmacc {

// Calls back before each chain of verbs to a node.
class WatchedEndpoint : public ForwardingEndpoint {
 public:
  using Watch = std::function<void(std::span<const Verb>)>;
  WatchedEndpoint(std::unique_ptr<Endpoint> inner, const Watch& watch)
      : ForwardingEndpoint(std::move(inner)), watch_(watch) {}
  void ring(NodeId node, std::span<const Verb> chain, Completion* completion) override {
    if (watch_) watch_(chain);
    ForwardingEndpoint::ring(node, chain, completion);
  }

 private:
  const Watch& watch_;
};

class SlotScanTest : public testing::Test {
 protected:
  static constexpr uint32_t kAnyNumber = UINT32_MAX;  // of slots for each row

  static Topology one_node() {
    constexpr uint64_t kPages = 24;
    Topology topology;
    topology.nodes = 1;
    topology.workers_max = 16;
    topology.region_bytes = region_bytes_min(topology) + kPages * kPageBytes;
    return topology;
  }
  SlotScanTest()
      : engine_(5, 0, 1, one_node().region_bytes, /*one_by_one=*/true), layout_(one_node()) {
    engine_.options().reserved_slots_max = 0;  // they count as rows
    begin_with({0, kAnyNumber});
  }
  // A coordinator whose scans go by slots within these limits.
  void begin_with(SlotScanLimits limits) {
    engine_.options().slot_scans = limits;
    here_ = &engine_.add_coordinator([this](std::unique_ptr<Endpoint> endpoint) {
      return std::make_unique<WatchedEndpoint>(std::move(endpoint), watch_);
    });
    one_ = std::make_unique<Session>(*here_);
  }
  template <typename Task>
  void as_one(const Task& task) {
    engine_.run(*here_, task);
  }
  TableId make_table(uint32_t number, uint32_t record_size) {
    TableSpec spec;
    spec.relfilenode = number;
    spec.record_size = record_size;
    auto table = one_->create_table(spec);
    CHECK(table.ok());
    return table->id;
  }
  static TxnOptions options() { return {.protocol = Protocol::kOcc, .plan = StagePlan(511)}; }
  // So many rows "<from>" and so on; false: there is no memory left.
  bool insert(TableId table, int from, int rows, size_t row_bytes) {
    CHECK(one_->begin(options()).ok());
    Status status;
    for (int i = 0; i < rows && status.ok(); i++) {
      status = one_->insert(table, std::to_string(from + i), std::string(row_bytes, 'r'));
    }
    if (status.ok()) status = one_->commit();
    one_->abort();
    return status.ok();
  }
  static Status put_in_one(Session& session, TableId table, std::string_view key) {
    RDMACC_RETURN_IF_ERROR(session.begin(options()));
    RDMACC_RETURN_IF_ERROR(session.put(table, key, "s"));
    return session.commit();
  }
  // How often a scan returns each key, or what ends it.
  std::map<std::string, int> scan(Session& session, TableId table, Status& status,
                                  uint64_t* shared_walk = nullptr) {
    std::map<std::string, int> found;
    auto cursor = session.scan(table, kEveryCommand, ScanMode::kSerializable, {}, shared_walk);
    status = cursor.status();
    std::vector<RowView> batch;
    while (status.ok()) {
      status = session.scan_next(**cursor, batch);
      if (batch.empty()) break;
      for (const RowView& row : batch) found[std::string(row.key)]++;
    }
    return found;
  }
  uint64_t* word_at(uint64_t offset) {
    std::byte* region = engine_.node(0).worker().endpoint().local_region();
    return reinterpret_cast<uint64_t*>(region + offset);
  }
  // The word of the page that the verb goes to; nullptr: it goes to none.
  uint64_t* page_word_of(const Verb& verb) {
    if (verb.remote_offset < layout_.page(0)) return nullptr;
    return word_at(layout_.page_word((verb.remote_offset - layout_.page(0)) / kPageBytes));
  }
  static bool is_of_slots(uint64_t word) { return PageWord{word}.kind() == PageKind::kSlot; }

  SimEngine engine_;
  const RegionLayout layout_;
  WatchedEndpoint::Watch watch_;
  Coordinator* here_ = nullptr;
  std::unique_ptr<Session> one_;
};

}  // namespace rdmacc
