#include "pg_rdmacc/workload/tpcc_tables.h"

#include "pg_rdmacc/workload/native_query.h"

extern "C" {
#include "catalog/pg_type.h"
}

namespace {

constexpr RdmaccNativeColumn kItem[] = {{"i_id", INT4OID, 1},
                                        {"i_name", VARCHAROID, 1},
                                        {"i_price", NUMERICOID, 1},
                                        {"i_data", VARCHAROID, 1},
                                        {"i_im_id", INT4OID, 1}};
constexpr RdmaccNativeColumn kWarehouse[] = {
    {"w_id", INT4OID, 1},      {"w_ytd", NUMERICOID, 1},     {"w_tax", NUMERICOID, 1},
    {"w_name", VARCHAROID, 1}, {"w_street_", VARCHAROID, 2}, {"w_city", VARCHAROID, 1},
    {"w_state", BPCHAROID, 1}, {"w_zip", BPCHAROID, 1}};
constexpr RdmaccNativeColumn kDistrict[] = {{"d_w_id", INT4OID, 1},       {"d_id", INT4OID, 1},
                                            {"d_ytd", NUMERICOID, 1},     {"d_tax", NUMERICOID, 1},
                                            {"d_next_o_id", INT4OID, 1},  {"d_name", VARCHAROID, 1},
                                            {"d_street_", VARCHAROID, 2}, {"d_city", VARCHAROID, 1},
                                            {"d_state", BPCHAROID, 1},    {"d_zip", BPCHAROID, 1}};
constexpr RdmaccNativeColumn kCustomer[] = {
    {"c_w_id", INT4OID, 1},        {"c_d_id", INT4OID, 1},
    {"c_id", INT4OID, 1},          {"c_discount", NUMERICOID, 1},
    {"c_credit", BPCHAROID, 1},    {"c_last", VARCHAROID, 1},
    {"c_first", VARCHAROID, 1},    {"c_credit_lim", NUMERICOID, 1},
    {"c_balance", NUMERICOID, 1},  {"c_ytd_payment", NUMERICOID, 1},
    {"c_payment_cnt", INT4OID, 1}, {"c_delivery_cnt", INT4OID, 1},
    {"c_street_", VARCHAROID, 2},  {"c_city", VARCHAROID, 1},
    {"c_state", BPCHAROID, 1},     {"c_zip", BPCHAROID, 1},
    {"c_phone", BPCHAROID, 1},     {"c_since", TIMESTAMPTZOID, 1},
    {"c_middle", BPCHAROID, 1},    {"c_data", VARCHAROID, 1}};
constexpr RdmaccNativeColumn kStock[] = {
    {"s_w_id", INT4OID, 1},    {"s_i_id", INT4OID, 1},      {"s_quantity", INT4OID, 1},
    {"s_ytd", NUMERICOID, 1},  {"s_order_cnt", INT4OID, 1}, {"s_remote_cnt", INT4OID, 1},
    {"s_data", VARCHAROID, 1}, {"s_dist_0", BPCHAROID, 9},  {"s_dist_10", BPCHAROID, 1}};
constexpr RdmaccNativeColumn kHistory[] = {
    {"h_c_id", INT4OID, 1},      {"h_c_d_id", INT4OID, 1}, {"h_c_w_id", INT4OID, 1},
    {"h_d_id", INT4OID, 1},      {"h_w_id", INT4OID, 1},   {"h_date", TIMESTAMPTZOID, 1},
    {"h_amount", NUMERICOID, 1}, {"h_data", VARCHAROID, 1}};
constexpr RdmaccNativeColumn kOrder[] = {
    {"o_w_id", INT4OID, 1},      {"o_d_id", INT4OID, 1},          {"o_id", INT4OID, 1},
    {"o_c_id", INT4OID, 1},      {"o_carrier_id", INT4OID, 1},    {"o_ol_cnt", INT4OID, 1},
    {"o_all_local", INT4OID, 1}, {"o_entry_d", TIMESTAMPTZOID, 1}};
constexpr RdmaccNativeColumn kNewOrder[] = {
    {"no_w_id", INT4OID, 1}, {"no_d_id", INT4OID, 1}, {"no_o_id", INT4OID, 1}};
constexpr RdmaccNativeColumn kLine[] = {
    {"ol_w_id", INT4OID, 1},        {"ol_d_id", INT4OID, 1},
    {"ol_o_id", INT4OID, 1},        {"ol_number", INT4OID, 1},
    {"ol_i_id", INT4OID, 1},        {"ol_delivery_d", TIMESTAMPTZOID, 1},
    {"ol_amount", NUMERICOID, 1},   {"ol_supply_w_id", INT4OID, 1},
    {"ol_quantity", NUMERICOID, 1}, {"ol_dist_info", BPCHAROID, 1}};

constexpr char kProcedure[] = "tpcc_create";

constexpr RdmaccNativeShape kShapes[] = {
    rdmacc_native_shape(kProcedure, "item", kItem, 1),
    rdmacc_native_shape(kProcedure, "warehouse", kWarehouse, 1),
    rdmacc_native_shape(kProcedure, "district", kDistrict, 2),
    rdmacc_native_shape(kProcedure, "customer", kCustomer, 3),
    rdmacc_native_shape(kProcedure, "stock", kStock, 2),
    rdmacc_native_shape(kProcedure, "history", kHistory, 0),
    rdmacc_native_shape(kProcedure, "oorder", kOrder, 3, {.nullable = kOrderCarrier + 1}),
    rdmacc_native_shape(kProcedure, "new_order", kNewOrder, 3),
    rdmacc_native_shape(kProcedure, "order_line", kLine, 4, {.nullable = kLineDelivered + 1})};

RdmaccNativeQuery by_name = {
    .text =
        "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3"
        " ORDER BY c_first",
    .argument_count = 3,
    .types = {INT4OID, INT4OID, TEXTOID},
    .plan = nullptr,
    .column_count = 1,
    .column_types = {INT4OID}};

}  // namespace

RdmaccNativeTable tpcc_item = rdmacc_native_table_of(&kShapes[0]),
                  tpcc_warehouse = rdmacc_native_table_of(&kShapes[1]),
                  tpcc_district = rdmacc_native_table_of(&kShapes[2]),
                  tpcc_customer = rdmacc_native_table_of(&kShapes[3]),
                  tpcc_stock = rdmacc_native_table_of(&kShapes[4]),
                  tpcc_history = rdmacc_native_table_of(&kShapes[5]),
                  tpcc_oorder = rdmacc_native_table_of(&kShapes[6]),
                  tpcc_new_order = rdmacc_native_table_of(&kShapes[7]),
                  tpcc_order_line = rdmacc_native_table_of(&kShapes[8]);

bool tpcc_find_by_name(Datum warehouse, Datum district, Datum last_name, int32* customer) {
  const Datum arguments[] = {warehouse, district, last_name};
  return rdmacc_native_find(&by_name, arguments, customer);
}
