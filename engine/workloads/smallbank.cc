#include "engine/workloads/smallbank.h"

#include <algorithm>
#include <cstring>

#include "engine/storage/messages.h"

namespace rdmacc {
namespace {

constexpr uint64_t kAccountsPerLoad = 32;  // rows of one loading transaction: twice as many
constexpr uint32_t kSavingsNumber = 1, kCheckingNumber = 2;

// 8 bytes, big-endian, so that keys sort as their numbers do.
struct AccountKey {
  explicit AccountKey(uint64_t account) {
    const uint64_t big = __builtin_bswap64(account);
    std::memcpy(bytes.data(), &big, sizeof(big));
  }
  operator std::string_view() const { return {bytes.data(), bytes.size()}; }  // NOLINT: implicit
  std::array<char, 8> bytes;
};

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
  RDMACC_RETURN_IF_ERROR(session.get(table, AccountKey(account), row));
  return balance_of(row, balance);
}

Status write_balance(Session& session, TableId table, uint64_t account, int64_t balance) {
  return session.put(table, AccountKey(account), BalanceRow(balance));
}

TableSpec table_spec(uint32_t number) {
  TableSpec spec;
  spec.relfilenode = number;
  spec.record_size = static_cast<uint32_t>(record_bytes(8, 8));
  spec.history = 3;
  return spec;
}

}  // namespace

Smallbank::Smallbank(const SmallbankOptions& options)
    : options_([&options] {
        SmallbankOptions o = options;
        CHECK(o.accounts >= 2 && o.hot_access_percent <= 100);
        if (o.hot_accounts == 0) o.hot_accounts = default_hot_accounts(o.accounts);
        o.hot_accounts = std::min(o.hot_accounts, o.accounts);
        return o;
      }()) {}

Status Smallbank::create_tables(Session& session) {
  const Result<TableMeta> savings = session.create_table(table_spec(kSavingsNumber));
  if (!savings.ok()) return savings.status();
  const Result<TableMeta> checking = session.create_table(table_spec(kCheckingNumber));
  if (!checking.ok()) return checking.status();
  savings_ = savings.value().id;
  checking_ = checking.value().id;
  return Status();
}

Status Smallbank::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  CHECK(part < parts && savings_ != kNoTable);
  const uint64_t end = options_.accounts * (part + 1) / parts;
  for (uint64_t at = options_.accounts * part / parts; at < end;) {
    const uint64_t next = std::min(end, at + kAccountsPerLoad);
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    Status status = abort_unless_ok(session, load_accounts(session, at, next));
    if (status.ok()) status = abort_unless_ok(session, session.commit());
    if (status.ok()) {
      at = next;
    } else if (status.code() != Code::kAborted) {  // else another part was in the way: again
      return status;
    }
  }
  return Status();
}

Status Smallbank::load_accounts(Session& session, uint64_t begin, uint64_t end) const {
  for (uint64_t account = begin; account < end; ++account) {
    for (const TableId table : {savings_, checking_}) {
      RDMACC_RETURN_IF_ERROR(
          session.insert_unchecked(table, AccountKey(account), BalanceRow(kInitialBalance)));
    }
  }
  return Status();
}

uint64_t Smallbank::draw_account(Random& random) const {
  const uint64_t cold = options_.accounts - options_.hot_accounts;
  if (cold == 0 || random.percent(options_.hot_access_percent)) {
    return random.below(options_.hot_accounts);
  }
  return options_.hot_accounts + random.below(cold);
}

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
  inputs.values[0] = draw_account(random);
  inputs.values[1] = draw_account(random);
  if (inputs.values[1] == inputs.values[0]) {
    inputs.values[1] = (inputs.values[0] + 1) % options_.accounts;
  }
  inputs.values[2] = 1 + random.below(kAmountMax);
  return inputs;
}

Status Smallbank::attempt(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                          TxnEffect& effect) const {
  effect = TxnEffect();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, carry_out(session, inputs, effect)));
  return abort_unless_ok(session, session.commit());
}

Status Smallbank::carry_out(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
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
  const AccountKey from_key(from), to_key(to);
  const std::array<std::string_view, 2> keys{from_key, to_key};
  std::array<RowView, 2> rows;
  RDMACC_RETURN_IF_ERROR(session.get_many(checking_, keys, rows));
  int64_t payer = 0, payee = 0;
  RDMACC_RETURN_IF_ERROR(balance_of(rows[0], payer));
  RDMACC_RETURN_IF_ERROR(balance_of(rows[1], payee));
  if (payer < amount) return Status();
  RDMACC_RETURN_IF_ERROR(write_balance(session, checking_, from, payer - amount));
  return write_balance(session, checking_, to, payee + amount);
}

Status Smallbank::deposit_checking(Session& session, uint64_t account, int64_t amount,
                                   TxnEffect& effect) const {
  int64_t checking = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, checking_, account, checking));
  effect.delta = amount;
  return write_balance(session, checking_, account, checking + amount);
}

Status Smallbank::balance(Session& session, uint64_t account) const {
  int64_t savings = 0, checking = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_, account, savings));
  return read_balance(session, checking_, account, checking);
}

Status Smallbank::transact_savings(Session& session, uint64_t account, int64_t amount,
                                   TxnEffect& effect) const {
  int64_t savings = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_, account, savings));
  if (savings + amount < 0) return Status();
  effect.delta = amount;
  return write_balance(session, savings_, account, savings + amount);
}

Status Smallbank::write_check(Session& session, uint64_t account, int64_t amount,
                              TxnEffect& effect) const {
  int64_t savings = 0, checking = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_, account, savings));
  RDMACC_RETURN_IF_ERROR(read_balance(session, checking_, account, checking));
  const int64_t penalty = savings + checking < amount ? 1 : 0;
  effect.delta = -(amount + penalty);
  return write_balance(session, checking_, account, checking - amount - penalty);
}

Status Smallbank::amalgamate(Session& session, uint64_t from, uint64_t to) const {
  int64_t savings = 0, checking = 0, target = 0;
  RDMACC_RETURN_IF_ERROR(read_balance(session, savings_, from, savings));
  const AccountKey from_key(from), to_key(to);
  const std::array<std::string_view, 2> keys{from_key, to_key};
  std::array<RowView, 2> rows;
  RDMACC_RETURN_IF_ERROR(session.get_many(checking_, keys, rows));
  RDMACC_RETURN_IF_ERROR(balance_of(rows[0], checking));
  RDMACC_RETURN_IF_ERROR(balance_of(rows[1], target));
  RDMACC_RETURN_IF_ERROR(write_balance(session, savings_, from, 0));
  RDMACC_RETURN_IF_ERROR(write_balance(session, checking_, from, 0));
  return write_balance(session, checking_, to, target + savings + checking);
}

Status Smallbank::total(Session& session, TableId table, int64_t& sum, uint64_t& rows) const {
  Result<ScanHandle> cursor = session.scan(table);
  if (!cursor.ok()) return cursor.status();
  std::vector<RowView> batch;
  do {
    RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
    for (const RowView& row : batch) {
      int64_t balance = 0;
      RDMACC_RETURN_IF_ERROR(balance_of(row, balance));
      sum += balance;
    }
    rows += batch.size();
  } while (!batch.empty());
  return Status();
}

Status Smallbank::check(Session& session, const TxnOptions& options, int64_t delta,
                        std::string& violation) const {
  violation.clear();
  int64_t sum = 0;
  std::array<uint64_t, 2> rows{};
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, total(session, savings_, sum, rows[0])));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, total(session, checking_, sum, rows[1])));
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
