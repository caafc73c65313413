#pragma once
#include "engine/workloads/settings.h"
#include "engine/workloads/tpcc_rows.h"

namespace rdmacc {

struct TpccOptions {
  uint32_t warehouses = 1;
  uint32_t items = tpcc::kItemsMax;
  uint32_t customers = tpcc::kCustomersMax;  // of each district
  // Of the transactions; the rest are new orders and payments, by their weights.
  uint32_t order_status_percent = 0, delivery_percent = 0, stock_level_percent = 0;
  uint32_t new_order_weight = 50, payment_weight = 50;
  uint32_t remote_stock_percent = 1;     // of the order lines
  uint32_t remote_payment_percent = 15;  // by a customer of another warehouse
  uint32_t by_last_name_percent = 60;    // of the payments and order-statuses
  uint32_t rollback_percent = 1;         // of the new orders
  uint32_t history = kDefaultHistory;

  uint32_t others_percent() const {
    return order_status_percent + delivery_percent + stock_level_percent;
  }
  // There are others than new orders and payments: new orders then note what those look for.
  bool is_full() const { return others_percent() > 0; }
};

constexpr uint32_t kTpccItemsMin = 100;  // the items of an order are distinct
constexpr uint32_t kTpccCustomersMin = 10;

extern const WorkloadKind kTpccKind;

// TPC-C's five transactions on its whole schema, loaded as clause 4.3 says; new-order and payment
// alone unless others are asked for. Invariant: the consistency conditions of clause 3.3.2, and as
// many orders as were loaded and committed.
class Tpcc : public Workload {
 public:
  enum Kind : uint32_t {
    kNewOrderKind,
    kPaymentKind,
    kOrderStatusKind,
    kDeliveryKind,
    kStockLevelKind
  };

  // What an order-status answers.
  struct OrderStatus {
    uint64_t customer = 0, order = 0;
    int64_t balance = 0;
    tpcc::OrderRow head;
    std::vector<tpcc::OrderLineRow> lines;
  };

  explicit Tpcc(const TpccOptions& options);

  const char* name() const override { return "tpcc"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  bool grows() const override { return true; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Not of those by last name, nor of those that look for an order: they are surveyed. A
  // stock-level reads more than procedures may.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  Status survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                KeyDeclaration& keys, bool& known) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

  // The logic of the two that only read, with their answers. Inputs of draw().
  Status order_status(Session& session, const TxnInputs& inputs, OrderStatus& answer) const;
  // `low`: how many items of the district's last orders are below the threshold.
  Status stock_level(Session& session, const TxnInputs& inputs, uint32_t& low) const;

 private:
  // tpcc_new_order.cc
  TxnInputs draw_new_order(Random& random) const;
  Status new_order(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;
  void declare_new_order(const TxnInputs& inputs, KeyDeclaration& keys) const;
  bool knows_new_order(const TxnInputs& inputs) const;
  // tpcc_payment.cc
  TxnInputs draw_payment(Random& random) const;
  Status payment(Session& session, const TxnInputs& inputs) const;
  bool declare_payment(const TxnInputs& inputs, KeyDeclaration& keys) const;
  void declare_payment_of(const TxnInputs& inputs, uint64_t customer, KeyDeclaration& keys) const;
  bool knows_payment(const TxnInputs& inputs) const;
  Status survey_payment(Session& session, const TxnInputs& inputs, KeyDeclaration& keys) const;
  // tpcc_order_status.cc
  TxnInputs draw_order_status(Random& random) const;
  bool knows_order_status(const TxnInputs& inputs) const;
  Status survey_order_status(Session& session, const TxnInputs& inputs, KeyDeclaration& keys) const;
  // tpcc_delivery.cc
  TxnInputs draw_delivery(Random& random) const;
  Status delivery(Session& session, const TxnInputs& inputs) const;
  bool knows_delivery(const TxnInputs& inputs) const;
  Status survey_delivery(Session& session, const TxnInputs& inputs, KeyDeclaration& keys,
                         bool& known) const;
  // tpcc_stock_level.cc
  TxnInputs draw_stock_level(Random& random) const;
  bool knows_stock_level(const TxnInputs& inputs) const;

  uint32_t table_count() const {
    return options_.is_full() ? tpcc::kTableCount : uint32_t{tpcc::kNextDelivery};
  }
  bool is_warehouse(uint64_t number) const { return number >= 1 && number <= options_.warehouses; }
  uint64_t other_warehouse(Random& random, uint64_t home) const;

  const TpccOptions options_;
};

}  // namespace rdmacc
