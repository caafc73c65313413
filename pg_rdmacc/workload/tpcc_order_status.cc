/* TPC-C's order-status as one call that reads the engine itself, but for the look-ups of a customer
 * by name and of the last order, which are statements; what it does is what
 * rdmacc.tpcc_order_status_sql() in script/6_tpcc.sql does. */
#include "pg_rdmacc/workload/native_query.h"
#include "pg_rdmacc/workload/tpcc_orders.h"
#include "pg_rdmacc/workload/tpcc_tables.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"

PGDLLEXPORT Datum rdmacc_tpcc_order_status(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpcc_order_status);
}

namespace {

enum Argument { kHome, kDistrict, kCustomer, kLastName };

RdmaccNativeQuery last_order = {
    .text =
        "SELECT o_id FROM oorder WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3"
        " ORDER BY o_id DESC LIMIT 1",
    .argument_count = 3,
    .types = {INT4OID, INT4OID, INT4OID},
    .plan = nullptr,
    .column_count = 1,
    .column_types = {INT4OID}};

/* False where there is no customer of the name. */
bool customer_of(FunctionCallInfo fcinfo, int32* customer) {
  if (PG_ARGISNULL(kHome) || PG_ARGISNULL(kDistrict)) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("nothing but the customer's number or last name may be null")));
  }
  if (!PG_ARGISNULL(kCustomer)) *customer = PG_GETARG_INT32(kCustomer);
  if (!PG_ARGISNULL(kCustomer)) return true;
  if (PG_ARGISNULL(kLastName)) return false;
  return tpcc_find_by_name(PG_GETARG_DATUM(kHome), PG_GETARG_DATUM(kDistrict),
                           PG_GETARG_DATUM(kLastName), customer);
}

void read_customer(const RdmaccNativeCall* call, const Datum* key) {
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tpcc_customer, call, &access);
  rdmacc_native_read_row(&access, key, &row);
  rdmacc_native_close(&access);
}

void read_order(const RdmaccNativeCall* call, TpccOrder* order) {
  RdmaccNativeAccess access;
  size_t lines = 0;
  rdmacc_native_open(&tpcc_oorder, call, &access);
  tpcc_read_orders(&access, order, 1);
  rdmacc_native_close(&access);
  rdmacc_native_open(&tpcc_order_line, call, &access);
  tpcc_read_lines(&access, order, 1, &lines);
  rdmacc_native_close(&access);
}

}  // namespace

Datum rdmacc_tpcc_order_status(PG_FUNCTION_ARGS) {
  int32 customer = 0;
  if (!customer_of(fcinfo, &customer)) PG_RETURN_NULL();
  const Datum key[] = {PG_GETARG_DATUM(kHome), PG_GETARG_DATUM(kDistrict), Int32GetDatum(customer)};
  TpccOrder order = {};
  order.warehouse = PG_GETARG_INT32(kHome);
  order.district = PG_GETARG_INT32(kDistrict);
  const bool found = rdmacc_native_find(&last_order, key, &order.number);
  const RdmaccNativeCall call = rdmacc_native_call(ACL_SELECT);
  read_customer(&call, key);
  if (!found) PG_RETURN_NULL();
  read_order(&call, &order);
  PG_RETURN_INT32(order.number);
}
