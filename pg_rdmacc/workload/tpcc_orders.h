/* Orders of TPC-C by their numbers, for the transactions that look at what was ordered. */
#pragma once
#include "pg_rdmacc/workload/native_rows.h"

typedef struct TpccOrder {
  int32 warehouse, district, number;
  int32 customer, lines; /* as its row says, once that was read */
} TpccOrder;

/* The orders' rows, all in one round, palloc'ed; P0002 where one is missing. `access` is to oorder.
 */
RdmaccNativeRow* tpcc_read_orders(const RdmaccNativeAccess* access, TpccOrder* orders, int count);

/* The rows of all their lines, order by order, all in one round, palloc'ed; P0002 where one is
 * missing. `access` is to order_line. */
RdmaccNativeRow* tpcc_read_lines(const RdmaccNativeAccess* access, const TpccOrder* orders,
                                 int count, size_t* lines);
