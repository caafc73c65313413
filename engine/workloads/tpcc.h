#pragma once
#include "engine/workloads/settings.h"
#include "engine/workloads/tpcc_rows.h"

namespace rdmacc {

struct TpccOptions {
  uint32_t warehouses = 1;
  uint32_t items = tpcc::kItemsMax;
  uint32_t customers = tpcc::kCustomersMax;  // of each district
  uint32_t new_order_percent = 50;           // of the transactions; the others are payments
  uint32_t remote_stock_percent = 1;         // of the order lines
  uint32_t remote_payment_percent = 15;      // by a customer of another warehouse
  uint32_t by_last_name_percent = 60;        // of the payments
  uint32_t rollback_percent = 1;             // of the new orders
  uint32_t history = kDefaultHistory;
};

constexpr uint32_t kTpccItemsMin = 100;  // the items of an order are distinct
constexpr uint32_t kTpccCustomersMin = 10;

extern const WorkloadKind kTpccKind;

// TPC-C's new-order and payment on its whole schema, loaded as clause 4.3 says. Invariant: the
// consistency conditions 1 to 4, 8 and 9 of clause 3.3.2, and as many orders as were loaded and
// committed.
class Tpcc : public Workload {
 public:
  enum Kind : uint32_t { kNewOrderKind, kPaymentKind };

  explicit Tpcc(const TpccOptions& options);

  const char* name() const override { return "tpcc"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  bool grows() const override { return true; }
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Not of payments by last name: those are surveyed.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  Status survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                KeyDeclaration& keys, bool& known) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

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

  uint64_t other_warehouse(Random& random, uint64_t home) const;

  const TpccOptions options_;
};

}  // namespace rdmacc
