#pragma once
#include "engine/workloads/record_chooser.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

struct SmallbankOptions {
  uint64_t accounts = 100'000;  // at least 2
  uint64_t hot_accounts = 0;    // the first so many; 0: a thousandth, at least 2
  uint32_t hot_access_percent = 10;
  // Only transactions that keep the total (send-payment, balance, amalgamate), so that it holds
  // even where the outcome of some transactions is never learnt.
  bool transfers_only = false;
  uint32_t history = kDefaultHistory;
};

extern const WorkloadKind kSmallbankKind;

// SmallBank in RCC's mix (send-payment 17, deposit-checking 17, balance 17, transact-savings 16,
// write-check 17, amalgamate 16 of 100), on two tables, savings and checking, keyed by account.
// A payment or withdrawal that the balance does not cover changes nothing and commits.
// Invariant: the total of all balances is the initial one plus the deposits less the withdrawals.
class Smallbank : public Workload {
 public:
  static constexpr int64_t kInitialBalance = 1'000;
  static constexpr uint64_t kAmountMax = 100;

  static constexpr uint64_t default_hot_accounts(uint64_t accounts) {
    return accounts / 1000 < 2 ? 2 : accounts / 1000;
  }

  explicit Smallbank(const SmallbankOptions& options);

  const char* name() const override { return "smallbank"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

 private:
  enum Kind : uint32_t {
    kSendPayment,
    kDepositChecking,
    kBalance,
    kTransactSavings,
    kWriteCheck,
    kAmalgamate
  };

  Status send_payment(Session& session, uint64_t from, uint64_t to, int64_t amount) const;
  Status deposit_checking(Session& session, uint64_t account, int64_t amount,
                          TxnEffect& effect) const;
  Status balance(Session& session, uint64_t account) const;
  Status transact_savings(Session& session, uint64_t account, int64_t amount,
                          TxnEffect& effect) const;
  Status write_check(Session& session, uint64_t account, int64_t amount, TxnEffect& effect) const;
  Status amalgamate(Session& session, uint64_t from, uint64_t to) const;
  TableId savings_table() const { return table(0); }
  TableId checking_table() const { return table(1); }
  Status total(Session& session, TableId table, int64_t& sum, uint64_t& rows) const;

  const SmallbankOptions options_;
  const RecordChooser accounts_;
};

}  // namespace rdmacc
