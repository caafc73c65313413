/* TPC-C's payment as one call that reads and writes the engine itself, but for the look-up of a
 * customer by name, which is a statement; what it does is what rdmacc.tpcc_payment_sql() in
 * script/6_tpcc.sql does. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/numeric_values.h"
#include "pg_rdmacc/workload/tpcc_tables.h"

extern "C" {
#include "access/xact.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_tpcc_payment(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpcc_payment);
}

namespace {

enum Argument {
  kHome,
  kDistrict,
  kCustomerWarehouse,
  kCustomerDistrict,
  kCustomer,
  kLastName,
  kAmount
};

constexpr int kDataCharactersMax = 500;

struct Payment {
  int32 home, district, customer_warehouse, customer_district, customer;
  Datum amount;
};

void check_arguments(FunctionCallInfo fcinfo) {
  for (int i = 0; i <= kAmount; i++) {
    if (!PG_ARGISNULL(i) || i == kCustomer || i == kLastName) continue;
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("nothing but the customer's number or last name may be null")));
  }
}

/* False where there is no customer of the name. */
bool payment_of(FunctionCallInfo fcinfo, Payment* payment) {
  check_arguments(fcinfo);
  *payment = {.home = PG_GETARG_INT32(kHome),
              .district = PG_GETARG_INT32(kDistrict),
              .customer_warehouse = PG_GETARG_INT32(kCustomerWarehouse),
              .customer_district = PG_GETARG_INT32(kCustomerDistrict),
              .customer = PG_GETARG_INT32(kCustomer),
              .amount = PG_GETARG_DATUM(kAmount)};
  if (!PG_ARGISNULL(kCustomer)) return true;
  if (PG_ARGISNULL(kLastName)) return false;
  return tpcc_find_by_name(PG_GETARG_DATUM(kCustomerWarehouse), PG_GETARG_DATUM(kCustomerDistrict),
                           PG_GETARG_DATUM(kLastName), &payment->customer);
}

void add_to(const RdmaccNativeAccess* access, Datum* values, int column, Datum amount) {
  values[column] =
      rdmacc_native_assigned(access, column, rdmacc_numeric_add(values[column], amount));
}

bool has_bad_credit(Datum credit) {
  const BpChar* text = DatumGetBpCharPP(credit);
  const int length = bpchartruelen(VARDATA_ANY(text), static_cast<int>(VARSIZE_ANY_EXHDR(text)));
  return length == 2 && memcmp(VARDATA_ANY(text), "BC", 2) == 0;
}

/* The payment before what was known of the customer. */
Datum with_payment(const Payment* payment, Datum known) {
  const char* amount = DatumGetCString(DirectFunctionCall1(numeric_out, payment->amount));
  const char* longer =
      psprintf("%d %d %d %d %d %s %s", payment->customer, payment->customer_district,
               payment->customer_warehouse, payment->district, payment->home, amount,
               TextDatumGetCString(known));
  return DirectFunctionCall2(text_left, CStringGetTextDatum(longer),
                             Int32GetDatum(kDataCharactersMax));
}

/* The balance. */
Datum write_customer(const RdmaccNativeCall* call, const Payment* payment) {
  const Datum key[] = {Int32GetDatum(payment->customer_warehouse),
                       Int32GetDatum(payment->customer_district), Int32GetDatum(payment->customer)};
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tpcc_customer, call, &access);
  rdmacc_native_read_row(&access, key, &row);
  Datum* values = row.values;
  values[kCustomerBalance] =
      rdmacc_native_assigned(&access, kCustomerBalance,
                             rdmacc_numeric_subtract(values[kCustomerBalance], payment->amount));
  add_to(&access, values, kCustomerYtd, payment->amount);
  values[kCustomerPayments] =
      DirectFunctionCall2(int4pl, values[kCustomerPayments], Int32GetDatum(1));
  if (has_bad_credit(values[kCustomerCredit])) {
    values[kCustomerData] = rdmacc_native_assigned(&access, kCustomerData,
                                                   with_payment(payment, values[kCustomerData]));
  }
  rdmacc_native_update(&access, row.key, values);
  rdmacc_native_close(&access);
  return values[kCustomerBalance];
}

struct Receiver { /* a warehouse or a district */
  RdmaccNativeTable* table;
  int ytd, name; /* columns */
};

constexpr Receiver kWarehouseReceives = {
    .table = &tpcc_warehouse, .ytd = kWarehouseYtd, .name = kWarehouseName};
constexpr Receiver kDistrictReceives = {
    .table = &tpcc_district, .ytd = kDistrictYtd, .name = kDistrictName};

/* Its name. */
char* write_receiver(const RdmaccNativeCall* call, const Receiver* receiver,
                     const Payment* payment) {
  const Datum key[] = {Int32GetDatum(payment->home), Int32GetDatum(payment->district)};
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(receiver->table, call, &access);
  rdmacc_native_read_row(&access, key, &row);
  add_to(&access, row.values, receiver->ytd, payment->amount);
  rdmacc_native_update(&access, row.key, row.values);
  rdmacc_native_close(&access);
  return TextDatumGetCString(row.values[receiver->name]);
}

void insert_history(const RdmaccNativeCall* call, const Payment* payment, const char* names) {
  const RdmaccNativeCall inserts = rdmacc_native_call_for(call, ACL_INSERT);
  RdmaccNativeAccess access;
  rdmacc_native_open(&tpcc_history, &inserts, &access);
  Datum values[kHistoryColumns] = {};
  values[kHistoryCustomer] = Int32GetDatum(payment->customer);
  values[kHistoryCustomerDistrict] = Int32GetDatum(payment->customer_district);
  values[kHistoryCustomerWarehouse] = Int32GetDatum(payment->customer_warehouse);
  values[kHistoryDistrict] = Int32GetDatum(payment->district);
  values[kHistoryWarehouse] = Int32GetDatum(payment->home);
  values[kHistoryDate] = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
  values[kHistoryAmount] = rdmacc_native_assigned(&access, kHistoryAmount, payment->amount);
  values[kHistoryData] = rdmacc_native_assigned(&access, kHistoryData, CStringGetTextDatum(names));
  rdmacc_native_insert(&access, values, nullptr);
  rdmacc_native_close(&access);
}

}  // namespace

Datum rdmacc_tpcc_payment(PG_FUNCTION_ARGS) {
  Payment payment;
  if (!payment_of(fcinfo, &payment)) PG_RETURN_NULL();
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT | ACL_UPDATE);
  const Datum balance = write_customer(&call, &payment);
  const char* of_warehouse = write_receiver(&call, &kWarehouseReceives, &payment);
  const char* of_district = write_receiver(&call, &kDistrictReceives, &payment);
  insert_history(&call, &payment, psprintf("%s    %s", of_warehouse, of_district));
  return balance;
}
