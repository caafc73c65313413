#include "pg_rdmacc/workload/tpce_tables.h"

#include "pg_rdmacc/workload/native_query.h"

extern "C" {
#include "catalog/pg_type.h"
}

namespace {

constexpr RdmaccNativeColumn kCustomer[] = {
    {"c_id", INT8OID, 1},         {"c_tax_id", VARCHAROID, 1},  {"c_st_id", VARCHAROID, 1},
    {"c_l_name", VARCHAROID, 1},  {"c_f_name", VARCHAROID, 1},  {"c_m_name", BPCHAROID, 1},
    {"c_gndr", BPCHAROID, 1},     {"c_tier", INT2OID, 1},       {"c_dob", DATEOID, 1},
    {"c_ad_id", INT8OID, 1},      {"c_ctry_1", VARCHAROID, 1},  {"c_area_1", VARCHAROID, 1},
    {"c_local_1", VARCHAROID, 1}, {"c_ext_1", VARCHAROID, 1},   {"c_ctry_2", VARCHAROID, 1},
    {"c_area_2", VARCHAROID, 1},  {"c_local_2", VARCHAROID, 1}, {"c_ext_2", VARCHAROID, 1},
    {"c_ctry_3", VARCHAROID, 1},  {"c_area_3", VARCHAROID, 1},  {"c_local_3", VARCHAROID, 1},
    {"c_ext_3", VARCHAROID, 1},   {"c_email_", VARCHAROID, 2}};
constexpr RdmaccNativeColumn kAccount[] = {{"ca_id", INT8OID, 1},     {"ca_b_id", INT8OID, 1},
                                           {"ca_c_id", INT8OID, 1},   {"ca_name", VARCHAROID, 1},
                                           {"ca_tax_st", INT2OID, 1}, {"ca_bal", NUMERICOID, 1}};
constexpr RdmaccNativeColumn kLastTrade[] = {{"lt_s_symb", VARCHAROID, 1},
                                             {"lt_dts", TIMESTAMPTZOID, 1},
                                             {"lt_price", NUMERICOID, 1},
                                             {"lt_open_price", NUMERICOID, 1},
                                             {"lt_vol", INT8OID, 1}};
constexpr RdmaccNativeColumn kTrade[] = {
    {"t_id", INT8OID, 1},           {"t_dts", TIMESTAMPTZOID, 1},     {"t_st_id", VARCHAROID, 1},
    {"t_tt_id", VARCHAROID, 1},     {"t_is_cash", BOOLOID, 1},        {"t_s_symb", VARCHAROID, 1},
    {"t_qty", INT4OID, 1},          {"t_bid_price", NUMERICOID, 1},   {"t_ca_id", INT8OID, 1},
    {"t_exec_name", VARCHAROID, 1}, {"t_trade_price", NUMERICOID, 1}, {"t_chrg", NUMERICOID, 1},
    {"t_comm", NUMERICOID, 1},      {"t_tax", NUMERICOID, 1},         {"t_lifo", BOOLOID, 1}};
/* The key's columns first: the table is made so. */
constexpr RdmaccNativeColumn kTradeHistory[] = {
    {"th_t_id", INT8OID, 1}, {"th_st_id", VARCHAROID, 1}, {"th_dts", TIMESTAMPTZOID, 1}};
constexpr RdmaccNativeColumn kStatusType[] = {{"st_id", VARCHAROID, 1}, {"st_name", VARCHAROID, 1}};

constexpr int kTaxIdAttribute = 2;

constexpr char kProcedure[] = "tpce_create";

constexpr RdmaccNativeShape kShapes[] = {
    rdmacc_native_shape(kProcedure, "customer", kCustomer, 1, {.unique = kTaxIdAttribute}),
    rdmacc_native_shape(kProcedure, "customer_account", kAccount, 1),
    rdmacc_native_shape(kProcedure, "last_trade", kLastTrade, 1),
    rdmacc_native_shape(kProcedure, "trade", kTrade, 1),
    rdmacc_native_shape(kProcedure, "trade_history", kTradeHistory, 2),
    rdmacc_native_shape(kProcedure, "status_type", kStatusType, 1)};

RdmaccNativeQuery by_tax_id = {.text = "SELECT c_id FROM customer WHERE c_tax_id = $1",
                               .argument_count = 1,
                               .types = {TEXTOID},
                               .plan = nullptr,
                               .column_count = 1,
                               .column_types = {INT8OID}};
RdmaccNativeQuery held = {
    .text =
        "SELECT hs_ca_id, hs_s_symb, hs_qty FROM holding_summary WHERE hs_ca_id BETWEEN $1 AND $2",
    .argument_count = 2,
    .types = {INT8OID, INT8OID},
    .plan = nullptr,
    .column_count = 3,
    .column_types = {INT8OID, VARCHAROID, INT4OID}};
RdmaccNativeQuery last_trades = {
    .text = "SELECT t_id FROM trade WHERE t_ca_id = $1 ORDER BY t_dts DESC LIMIT 10",
    .argument_count = 1,
    .types = {INT8OID},
    .plan = nullptr,
    .column_count = 1,
    .column_types = {INT8OID}};

}  // namespace

const char* const tpce_statuses[kStatuses] = {"PNDG", "SBMT", "CMPT", "CNCL", "ACTV"};

RdmaccNativeTable tpce_customer = rdmacc_native_table_of(&kShapes[0]),
                  tpce_account = rdmacc_native_table_of(&kShapes[1]),
                  tpce_last_trade = rdmacc_native_table_of(&kShapes[2]),
                  tpce_trade = rdmacc_native_table_of(&kShapes[3]),
                  tpce_trade_history = rdmacc_native_table_of(&kShapes[4]),
                  tpce_status_type = rdmacc_native_table_of(&kShapes[5]);

int64 tpce_find_customer(Datum tax_id) {
  Datum* customer = nullptr;
  if (rdmacc_native_find_rows(&by_tax_id, &tax_id, &customer) == 0) {
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND), errmsg("no customer has the tax id")));
  }
  return DatumGetInt64(customer[0]);
}

size_t tpce_find_holdings(int64 customer, TpceHolding** holdings) {
  const Datum accounts[] = {Int64GetDatum((customer - 1) * kAccountsMax + 1),
                            Int64GetDatum(customer * kAccountsMax)};
  Datum* values = nullptr;
  const size_t count = rdmacc_native_find_rows(&held, accounts, &values);
  *holdings = static_cast<TpceHolding*>(palloc(sizeof(TpceHolding) * count));
  for (size_t i = 0; i < count; i++, values += 3) {
    (*holdings)[i] = {.account = DatumGetInt64(values[0]),
                      .symbol = values[1],
                      .quantity = DatumGetInt32(values[2])};
  }
  return count;
}

size_t tpce_find_trades(int64 account, int64* trades) {
  const Datum argument = Int64GetDatum(account);
  Datum* values = nullptr;
  const size_t count = rdmacc_native_find_rows(&last_trades, &argument, &values);
  CHECK(count <= kTradesTold);
  for (size_t i = 0; i < count; i++) trades[i] = DatumGetInt64(values[i]);
  return count;
}
