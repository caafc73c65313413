/* SmallBank's transactions, each as one call that reads and writes the engine itself; what they do
 * is what the functions in script/2_smallbank.sql whose names end in _sql do. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/numeric_values.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"

PGDLLEXPORT Datum rdmacc_smallbank_balance(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_smallbank_balance);
PGDLLEXPORT Datum rdmacc_smallbank_deposit_checking(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_smallbank_deposit_checking);
PGDLLEXPORT Datum rdmacc_smallbank_send_payment(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_smallbank_send_payment);
PGDLLEXPORT Datum rdmacc_smallbank_transact_savings(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_smallbank_transact_savings);
PGDLLEXPORT Datum rdmacc_smallbank_write_check(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_smallbank_write_check);
PGDLLEXPORT Datum rdmacc_smallbank_amalgamate(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_smallbank_amalgamate);
}

namespace {

enum Column { kCustomer, kBalance, kInflow, kColumnCount };

constexpr RdmaccNativeColumn kColumns[kColumnCount] = {
    {"custid", INT8OID, 1}, {"bal", NUMERICOID, 1}, {"inflow", NUMERICOID, 1}};

constexpr RdmaccNativeShape shape_of(const char* table) {
  return {.table = table,
          .procedure = "smallbank_create",
          .columns = kColumns,
          .column_count = kColumnCount,
          .key_columns = 1,
          .unique_attribute = 0};
}

constexpr RdmaccNativeShape kSavingsShape = shape_of("savings");
constexpr RdmaccNativeShape kCheckingShape = shape_of("checking");

RdmaccNativeTable savings = {
    .shape = &kSavingsShape, .relation = InvalidOid, .epoch = 0, .path = nullptr};
RdmaccNativeTable checking = {
    .shape = &kCheckingShape, .relation = InvalidOid, .epoch = 0, .path = nullptr};

/* A customer's row in one of the tables. */
struct Account {
  BridgeBytes key;
  Datum values[kColumnCount];
};

bool is_less(Datum a, Datum b) { return DatumGetBool(DirectFunctionCall2(numeric_lt, a, b)); }

Datum zero(void) { return rdmacc_numeric_of(0); }

void read_accounts(const RdmaccNativeAccess* access, const Datum* customers, size_t count,
                   Account* accounts) {
  constexpr size_t kMost = 2;
  CHECK(count <= kMost);
  BridgeBytes keys[kMost];
  BridgeRow rows[kMost] = {};
  for (size_t i = 0; i < count; i++) keys[i] = rdmacc_native_key(access, &customers[i]);
  rdmacc_native_read(access, keys, count, rows);
  for (size_t i = 0; i < count; i++) {
    if (!rows[i].found) {
      ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
                      errmsg("there is no account " INT64_FORMAT, DatumGetInt64(customers[i]))));
    }
    accounts[i].key = keys[i];
    rdmacc_native_values(access, &rows[i], accounts[i].values);
  }
}

void write_account(const RdmaccNativeAccess* access, Account* account) {
  for (int column = kBalance; column <= kInflow; column++) {
    Datum* value = &account->values[column];
    *value = rdmacc_native_assigned(access, column, *value);
  }
  rdmacc_native_update(access, account->key, account->values);
}

/* Money of the outside. */
void come_in(Account* account, Datum amount) {
  account->values[kBalance] = rdmacc_numeric_add(account->values[kBalance], amount);
  account->values[kInflow] = rdmacc_numeric_add(account->values[kInflow], amount);
}

void check_two(Datum one, Datum other) {
  if (DatumGetInt64(one) != DatumGetInt64(other)) return;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the two customers are one")));
}

}  // namespace

Datum rdmacc_smallbank_balance(PG_FUNCTION_ARGS) {
  const Datum customer = PG_GETARG_DATUM(0);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  RdmaccNativeAccess in_savings, in_checking;
  rdmacc_native_open(&savings, &call, &in_savings);
  rdmacc_native_open(&checking, &call, &in_checking);
  Account saved, checked;
  read_accounts(&in_savings, &customer, 1, &saved);
  read_accounts(&in_checking, &customer, 1, &checked);
  rdmacc_native_close(&in_checking);
  rdmacc_native_close(&in_savings);
  return rdmacc_numeric_add(saved.values[kBalance], checked.values[kBalance]);
}

Datum rdmacc_smallbank_deposit_checking(PG_FUNCTION_ARGS) {
  const Datum customer = PG_GETARG_DATUM(0);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&checking, &call, &access);
  Account account;
  read_accounts(&access, &customer, 1, &account);
  come_in(&account, PG_GETARG_DATUM(1));
  write_account(&access, &account);
  rdmacc_native_close(&access);
  PG_RETURN_VOID();
}

Datum rdmacc_smallbank_send_payment(PG_FUNCTION_ARGS) {
  const Datum customers[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
  const Datum amount = PG_GETARG_DATUM(2);
  check_two(customers[0], customers[1]);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&checking, &call, &access);
  Account accounts[2];
  read_accounts(&access, customers, 2, accounts);
  Datum* payer = accounts[0].values;
  Datum* payee = accounts[1].values;
  const bool covered = !is_less(payer[kBalance], amount);
  if (covered) {
    payer[kBalance] = rdmacc_numeric_subtract(payer[kBalance], amount);
    payee[kBalance] = rdmacc_numeric_add(payee[kBalance], amount);
    write_account(&access, &accounts[0]);
    write_account(&access, &accounts[1]);
  }
  rdmacc_native_close(&access);
  PG_RETURN_BOOL(covered);
}

Datum rdmacc_smallbank_transact_savings(PG_FUNCTION_ARGS) {
  const Datum customer = PG_GETARG_DATUM(0);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess access;
  rdmacc_native_open(&savings, &call, &access);
  Account account;
  read_accounts(&access, &customer, 1, &account);
  come_in(&account, PG_GETARG_DATUM(1));
  const bool covered = !is_less(account.values[kBalance], zero());
  if (covered) write_account(&access, &account);
  rdmacc_native_close(&access);
  PG_RETURN_BOOL(covered);
}

Datum rdmacc_smallbank_write_check(PG_FUNCTION_ARGS) {
  const Datum customer = PG_GETARG_DATUM(0);
  Datum charge = PG_GETARG_DATUM(1);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess in_savings, in_checking;
  rdmacc_native_open(&savings, &call, &in_savings);
  rdmacc_native_open(&checking, &call, &in_checking);
  Account saved, checked;
  read_accounts(&in_savings, &customer, 1, &saved);
  read_accounts(&in_checking, &customer, 1, &checked);
  if (is_less(rdmacc_numeric_add(saved.values[kBalance], checked.values[kBalance]), charge)) {
    charge = rdmacc_numeric_add(charge, rdmacc_numeric_of(1));
  }
  come_in(&checked, rdmacc_numeric_subtract(zero(), charge));
  write_account(&in_checking, &checked);
  rdmacc_native_close(&in_checking);
  rdmacc_native_close(&in_savings);
  PG_RETURN_VOID();
}

Datum rdmacc_smallbank_amalgamate(PG_FUNCTION_ARGS) {
  const Datum customers[] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
  check_two(customers[0], customers[1]);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  RdmaccNativeAccess in_savings, in_checking;
  rdmacc_native_open(&savings, &call, &in_savings);
  rdmacc_native_open(&checking, &call, &in_checking);
  Account saved, accounts[2];
  read_accounts(&in_savings, customers, 1, &saved);
  read_accounts(&in_checking, customers, 2, accounts);
  Datum* source = accounts[0].values;
  Datum* target = accounts[1].values;
  target[kBalance] = rdmacc_numeric_add(
      target[kBalance], rdmacc_numeric_add(saved.values[kBalance], source[kBalance]));
  saved.values[kBalance] = zero();
  source[kBalance] = zero();
  write_account(&in_savings, &saved);
  write_account(&in_checking, &accounts[0]);
  write_account(&in_checking, &accounts[1]);
  rdmacc_native_close(&in_checking);
  rdmacc_native_close(&in_savings);
  PG_RETURN_VOID();
}
