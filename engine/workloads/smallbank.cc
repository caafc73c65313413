#include "engine/workloads/smallbank.h"

#include <algorithm>
#include <cstring>

#include "engine/workloads/bulk_load.h"
#include "engine/workloads/number_key.h"

namespace rdmacc {
namespace {

constexpr uint64_t kAccountsPerPart = 1'000;
constexpr uint32_t kSavingsNumber = 1, kCheckingNumber = 2;

struct BalanceRow {
  explicit BalanceRow(int64_t balance) { std::memcpy(bytes.data(), &balance, sizeof(balance)); }
  operator std::string_view() const { return {bytes.data(), bytes.size()}; }  // NOLINT: implicit
  std::array<char, 8> bytes;
};

Status balance_of(const RowView& row, int64_t& balance) {
  if (!row.found) return Status(Code::kCorrupt, "an account is missing");
  if (row.row.size() != sizeof(balance)) return Status(Code::kCorrupt, "a balance is not 8 bytes");
  std::memcpy(&balance, row.row.data(), sizeof(balance));
  return Status();
}

Status read_balance(Session& session, TableId table, uint64_t account, int64_t& balance) {
  RowView row;
  RDMACC_RETURN_IF_ERROR(session.get(table, NumberKey(account), row));
  return balance_of(row, balance);
}

Status write_balance(Session& session, TableId table, uint64_t account, int64_t balance) {
  return session.put(table, NumberKey(account), BalanceRow(balance));
}

TableSpec table_spec(uint32_t number, uint32_t history) {
  return native_table(number, record_bytes(8, 8), history);
}

constexpr std::array kSettings = {
    WorkloadSetting{"records", "accounts", "accounts", 2, 4'294'967'296, 100'000},
    WorkloadSetting{"hot-records", "hot-accounts", "hot accounts, 0: a thousandth", 0,
                    4'294'967'296, 0},
    WorkloadSetting{"hot-access", nullptr, "percent of accesses that go to hot accounts", 0, 100,
                    10},
    kHistorySetting,
};

Result<std::unique_ptr<Workload>> make_smallbank(const WorkloadSettings& settings,
                                                 const WorkloadCluster&) {
  SmallbankOptions options;
  options.accounts = settings.number("records");
  options.hot_accounts = settings.number("hot-records");
  options.hot_access_percent = settings.number32("hot-access");
  options.history = settings.number32("history");
  if (options.hot_accounts > options.accounts) {
    return Status(Code::kInvalidArgument, "--hot-records must be at most --records");
  }
  return Result<std::unique_ptr<Workload>>(std::make_unique<Smallbank>(options));
}

SmallbankOptions with_defaults(SmallbankOptions options) {
  CHECK(options.accounts >= 2);
  if (options.hot_accounts == 0) {
    options.hot_accounts = Smallbank::default_hot_accounts(options.accounts);
  }
  options.hot_accounts = std::min(options.hot_accounts, options.accounts);
  return options;
}

}  // namespace

const WorkloadKind kSmallbankKind = {"smallbank", "SmallBank in RCC's mix", kSettings,
                                     make_smallbank};

Smallbank::Smallbank(const SmallbankOptions& options)
    : options_(with_defaults(options)),
      accounts_(AccessPattern{options_.accounts, options_.hot_accounts, options_.hot_access_percent,
                              0}) {}

std::vector<TableSpec> Smallbank::table_specs() const {
  return {table_spec(kSavingsNumber, options_.history),
          table_spec(kCheckingNumber, options_.history)};
}

Status Smallbank::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  BulkLoad rows(session, options);
  const LoadPart accounts = part_of_load(options_.accounts, part, parts);
  for (uint64_t account = accounts.begin; account < accounts.end; ++account) {
    for (const TableId table : {savings_table(), checking_table()}) {
      RDMACC_RETURN_IF_ERROR(rows.add(table, NumberKey(account), BalanceRow(kInitialBalance)));
    }
  }
  return rows.finish();
}

uint64_t Smallbank::load_parts() const { return options_.accounts / kAccountsPerPart + 1; }

TxnInputs Smallbank::draw(Random& random) const {
  TxnInputs inputs;
  if (options_.transfers_only) {
    constexpr std::array<Kind, 3> kKinds{kSendPayment, kBalance, kAmalgamate};
    inputs.kind = kKinds[random.below(kKinds.size())];
  } else {
    constexpr std::array<uint64_t, 6> kUpTo{17, 34, 51, 67, 84, 100};
    const uint64_t drawn = random.below(100);
    while (drawn >= kUpTo[inputs.kind]) ++inputs.kind;
  }
  const uint64_t account = accounts_.choose(random);
  const uint64_t other = accounts_.choose(random);
  inputs.add(account);
  inputs.add(other == account ? (account + 1) % options_.accounts : other);
  inputs.add(1 + random.below(kAmountMax));
  return inputs;
}

Status Smallbank::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  const uint64_t account = inputs.values[0], other = inputs.values[1];
  const auto amount = static_cast<int64_t>(inputs.values[2]);
  switch (static_cast<Kind>(inputs.kind)) {
    case kSendPayment:
      return send_payment(session, account, other, amount);
    case kDepositChecking:
      return deposit_checking(session, account, amount, effect);
    case kBalance:
      return balance(session, account);
    case kTransactSavings:
      // Deposits and withdrawals alike; the second account, unused here, decides.
      return transact_savings(session, account, other % 2 == 0 ? amount : -amount, effect);
    case kWriteCheck:
      return write_check(session, account, amount, effect);
    case kAmalgamate:
      return amalgamate(session, account, other);
  }
  CHECK(false);
}

Status Smallbank::send_payment(Session& session, uint64_t from, uint64_t to, int64_t amount) const {
  const NumberKey from_key(from), to_key(to);
  const std::array<std::string_view, 2> keys{from_key, to_key};
  std::array<RowView, 2> rows;
  RDMACC_RETURN_IF_ERROR(session.get_many(checking_table(), keys, rows));
  int64_t payer = 0, payee = 0;
  RDMACC_RETURN_IF_ERROR(balance_of(rows[0], payer));
  RDMACC_RETURN_IF_ERROR(balance_of(rows[1], payee));
  if (payer < amount) return Status();
  RDMACC_RETURN_IF_ERROR(write_balance(session, checking_table(), from, payer - amount));
  return write_balance(session, checking_table(), to, payee + amount);
}

Status Smallbank::deposit_checking(Session& session, uint64_t account, int64_t amount,
                                   TxnEffect& effect) const {
  int64_t checking = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, checking_table(), account, checking));
  effect.delta = amount;
  return write_balance(session, checking_table(), account, checking + amount);
}

Status Smallbank::balance(Session& session, uint64_t account) const {
  int64_t savings = 0, checking = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_table(), account, savings));
  return read_balance(session, checking_table(), account, checking);
}

Status Smallbank::transact_savings(Session& session, uint64_t account, int64_t amount,
                                   TxnEffect& effect) const {
  int64_t savings = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_table(), account, savings));
  if (savings + amount < 0) return Status();
  effect.delta = amount;
  return write_balance(session, savings_table(), account, savings + amount);
}

Status Smallbank::write_check(Session& session, uint64_t account, int64_t amount,
                              TxnEffect& effect) const {
  int64_t savings = 0, checking = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_table(), account, savings));
  RDMACC_RETURN_IF_ERROR(read_balance(session, checking_table(), account, checking));
  const int64_t penalty = savings + checking < amount ? 1 : 0;
  effect.delta = -(amount + penalty);
  return write_balance(session, checking_table(), account, checking - amount - penalty);
}

Status Smallbank::amalgamate(Session& session, uint64_t from, uint64_t to) const {
  int64_t savings = 0, checking = 0, target = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_table(), from, savings));
  const NumberKey from_key(from), to_key(to);
  const std::array<std::string_view, 2> keys{from_key, to_key};
  std::array<RowView, 2> rows;
  RDMACC_RETURN_IF_ERROR(session.get_many(checking_table(), keys, rows));
  RDMACC_RETURN_IF_ERROR(balance_of(rows[0], checking));
  RDMACC_RETURN_IF_ERROR(balance_of(rows[1], target));
  RDMACC_RETURN_IF_ERROR(write_balance(session, savings_table(), from, 0));
  RDMACC_RETURN_IF_ERROR(write_balance(session, checking_table(), from, 0));
  return write_balance(session, checking_table(), to, target + savings + checking);
}

bool Smallbank::knows(const TxnInputs& inputs) const {
  return inputs.kind <= kAmalgamate && inputs.count == 3 && inputs.values[0] != inputs.values[1] &&
         inputs.values[2] <= kAmountMax;
}

// The keys of execute(): a row that only some balances change is declared as written.
bool Smallbank::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  const NumberKey account(inputs.values[0]), other(inputs.values[1]);
  switch (static_cast<Kind>(inputs.kind)) {
    case kSendPayment:
      keys.add(checking_table(), account, KeyUse::kWrite);
      keys.add(checking_table(), other, KeyUse::kWrite);
      return true;
    case kDepositChecking:
      keys.add(checking_table(), account, KeyUse::kWrite);
      return true;
    case kBalance:
      keys.add(savings_table(), account, KeyUse::kRead);
      keys.add(checking_table(), account, KeyUse::kRead);
      return true;
    case kTransactSavings:
      keys.add(savings_table(), account, KeyUse::kWrite);
      return true;
    case kWriteCheck:
      keys.add(savings_table(), account, KeyUse::kRead);
      keys.add(checking_table(), account, KeyUse::kWrite);
      return true;
    case kAmalgamate:
      keys.add(savings_table(), account, KeyUse::kWrite);
      keys.add(checking_table(), account, KeyUse::kWrite);
      keys.add(checking_table(), other, KeyUse::kWrite);
      return true;
  }
  return false;
}

Status Smallbank::total(Session& session, TableId table, int64_t& sum, uint64_t& rows) const {
  return for_each_row(session, table, [&sum, &rows](const RowView& row) {
    int64_t balance = 0;
    RDMACC_RETURN_IF_ERROR(balance_of(row, balance));
    sum += balance;
    ++rows;
    return Status();
  });
}

Status Smallbank::check(Session& session, const TxnOptions& options, int64_t delta,
                        std::string& violation) const {
  violation.clear();
  int64_t sum = 0;
  std::array<uint64_t, 2> rows{};
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, total(session, savings_table(), sum, rows[0])));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, total(session, checking_table(), sum, rows[1])));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  const int64_t expected = 2 * static_cast<int64_t>(options_.accounts) * kInitialBalance + delta;
  if (rows[0] != options_.accounts || rows[1] != options_.accounts) {
    violation = "the scans found " + std::to_string(rows[0]) + " savings and " +
                std::to_string(rows[1]) + " checking rows of " + std::to_string(options_.accounts) +
                " accounts";
  } else if (sum != expected) {
    violation =
        "the balances add up to " + std::to_string(sum) + ", not to " + std::to_string(expected);
  }
  return Status();
}

}  // namespace rdmacc
