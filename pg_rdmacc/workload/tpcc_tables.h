/* TPC-C's tables, as rdmacc.tpcc_create() makes them. */
#pragma once
#include "pg_rdmacc/workload/native_table.h"

enum ItemColumn { kItemPrice = 2 };
enum WarehouseColumn { kWarehouseYtd = 1, kWarehouseTax, kWarehouseName };
enum DistrictColumn { kDistrictYtd = 2, kDistrictTax, kDistrictNextOrder, kDistrictName };
enum CustomerColumn {
  kCustomerDiscount = 3,
  kCustomerCredit,
  kCustomerBalance = 8,
  kCustomerYtd,
  kCustomerPayments,
  kCustomerDeliveries,
  kCustomerData = 20
};
enum StockColumn {
  kStockQuantity = 2,
  kStockYtd,
  kStockOrders,
  kStockRemoteOrders,
  kStockDistricts = 7
};
enum HistoryColumn {
  kHistoryCustomer,
  kHistoryCustomerDistrict,
  kHistoryCustomerWarehouse,
  kHistoryDistrict,
  kHistoryWarehouse,
  kHistoryDate,
  kHistoryAmount,
  kHistoryData,
  kHistoryColumns
};
enum OrderColumn {
  kOrderWarehouse,
  kOrderDistrict,
  kOrderNumber,
  kOrderCustomer,
  kOrderCarrier,
  kOrderLines,
  kOrderAllLocal,
  kOrderDate,
  kOrderColumns
};
enum LineColumn {
  kLineWarehouse,
  kLineDistrict,
  kLineOrder,
  kLineNumber,
  kLineItem,
  kLineDelivered,
  kLineAmount,
  kLineSupply,
  kLineQuantity,
  kLineDistrictText,
  kLineColumns
};

constexpr int kDistricts = 10; /* of a warehouse */

extern RdmaccNativeTable tpcc_item, tpcc_warehouse, tpcc_district, tpcc_customer, tpcc_stock,
    tpcc_history, tpcc_oorder, tpcc_new_order, tpcc_order_line;

/* The customer in the middle of those with the name, by first names: a statement, for before the
 * call. False where there is none. */
bool tpcc_find_by_name(Datum warehouse, Datum district, Datum last_name, int32* customer);
