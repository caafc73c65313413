/* TPC-E's customer-position as one call that reads the engine itself, but for what is looked up by
 * something else than a whole primary key: a tax id, what accounts hold, an account's last trades.
 * What it does is what rdmacc.tpce_customer_position_sql() in script/8_tpce.sql does. */
#include "pg_rdmacc/workload/native_rows.h"
#include "pg_rdmacc/workload/numeric_values.h"
#include "pg_rdmacc/workload/tpce_tables.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"

PGDLLEXPORT Datum rdmacc_tpce_customer_position(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpce_customer_position);
}

namespace {

enum Argument { kNumber, kTaxId, kAccountWanted };
enum Output {
  kProfile,
  kAccounts,
  kCash,
  kAssets,
  kTrades,
  kSymbols,
  kQuantities,
  kStatusNames,
  kDates,
  kOutputs
};
constexpr int kEventsMax = kTradesTold * kStatuses;

typedef struct Position {
  Datum account, balance, assets; /* bigint, numeric, numeric */
} Position;

typedef struct Event {
  Datum trade, symbol, quantity, status, date;
} Event;

int compare_symbols(const void* a, const void* b) {
  const Datum one = static_cast<const TpceHolding*>(a)->symbol;
  const Datum other = static_cast<const TpceHolding*>(b)->symbol;
  const size_t length = VARSIZE_ANY_EXHDR(one), other_length = VARSIZE_ANY_EXHDR(other);
  if (length != other_length) return length < other_length ? -1 : 1;
  return memcmp(VARDATA_ANY(one), VARDATA_ANY(other), length);
}

int compare_positions(const void* a, const void* b) {
  const auto* one = static_cast<const Position*>(a);
  const auto* other = static_cast<const Position*>(b);
  const int by_assets = DatumGetInt32(DirectFunctionCall2(numeric_cmp, one->assets, other->assets));
  if (by_assets != 0) return by_assets;
  return DatumGetInt64(one->account) < DatumGetInt64(other->account) ? -1 : 1;
}

int compare_events(const void* a, const void* b) {
  const auto* one = static_cast<const Event*>(a);
  const auto* other = static_cast<const Event*>(b);
  const int64 date = DatumGetInt64(one->date), other_date = DatumGetInt64(other->date);
  if (date != other_date) return date > other_date ? -1 : 1;
  return DatumGetInt64(one->trade) < DatumGetInt64(other->trade) ? -1 : 1;
}

RdmaccNativeRow* rows_for(size_t count) {
  return static_cast<RdmaccNativeRow*>(palloc(sizeof(RdmaccNativeRow) * count));
}

void read_rows(RdmaccNativeTable* table, const RdmaccNativeCall* call, const Datum* keys,
               size_t count, RdmaccNativeRow* rows) {
  RdmaccNativeAccess access;
  rdmacc_native_open(table, call, &access);
  rdmacc_native_read_rows(&access, keys, count, rows);
  rdmacc_native_close(&access);
}

Datum read_profile(const RdmaccNativeCall* call, Datum customer) {
  static FmgrInfo output;
  RdmaccNativeAccess access;
  RdmaccNativeRow row;
  rdmacc_native_open(&tpce_customer, call, &access);
  rdmacc_native_read_row(&access, &customer, &row);
  const Datum profile = rdmacc_native_text(RelationGetDescr(access.relation), row.values, &output);
  rdmacc_native_close(&access);
  return profile;
}

/* By number: TPC-E's customers have up to ten accounts in a row. Their count. */
int read_accounts(const RdmaccNativeCall* call, int64 customer, Position* positions) {
  Datum keys[kAccountsMax];
  RdmaccNativeRow* rows = rows_for(kAccountsMax);
  for (int i = 0; i < kAccountsMax; i++) {
    keys[i] = Int64GetDatum((customer - 1) * kAccountsMax + 1 + i);
  }
  read_rows(&tpce_account, call, keys, kAccountsMax, rows);
  int count = 0;
  for (int i = 0; i < kAccountsMax; i++) {
    if (!rows[i].found || DatumGetInt64(rows[i].values[kAccountCustomer]) != customer) continue;
    positions[count++] = {.account = keys[i],
                          .balance = rows[i].values[kAccountBalance],
                          .assets = rdmacc_numeric_of(0)};
  }
  return count;
}

/* A security that several accounts hold is read once. */
void add_assets(const RdmaccNativeCall* call, TpceHolding* holdings, size_t count,
                Position* positions, int position_count) {
  qsort(holdings, count, sizeof(TpceHolding), compare_symbols);
  auto* symbols = static_cast<Datum*>(palloc(sizeof(Datum) * count));
  size_t distinct = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && compare_symbols(&holdings[i - 1], &holdings[i]) == 0) continue;
    symbols[distinct++] = holdings[i].symbol;
  }
  RdmaccNativeRow* rows = rows_for(distinct);
  read_rows(&tpce_last_trade, call, symbols, distinct, rows);
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && compare_symbols(&holdings[i - 1], &holdings[i]) != 0) at++;
    if (!rows[at].found) continue; /* as a join leaves it out */
    const Datum worth = rdmacc_numeric_multiply(rdmacc_numeric_of(holdings[i].quantity),
                                                rows[at].values[kLastTradePrice]);
    for (int p = 0; p < position_count; p++) {
      if (DatumGetInt64(positions[p].account) != holdings[i].account) continue;
      positions[p].assets = rdmacc_numeric_add(positions[p].assets, worth);
    }
  }
}

/* Their count; those of a trade are found by the statuses that it may have had. */
int read_events(const RdmaccNativeCall* call, const int64* trades, size_t count, Event* events) {
  Datum trade_keys[kTradesTold], status_keys[kStatuses], event_keys[2 * kEventsMax];
  for (int s = 0; s < kStatuses; s++) status_keys[s] = CStringGetTextDatum(tpce_statuses[s]);
  for (size_t t = 0; t < count; t++) {
    trade_keys[t] = Int64GetDatum(trades[t]);
    for (size_t s = 0; s < kStatuses; s++) {
      Datum* key = &event_keys[2 * (t * kStatuses + s)];
      key[0] = trade_keys[t];
      key[1] = status_keys[s];
    }
  }
  RdmaccNativeRow* of_trades = rows_for(kTradesTold);
  RdmaccNativeRow* of_statuses = rows_for(kStatuses);
  RdmaccNativeRow* of_events = rows_for(kEventsMax);
  read_rows(&tpce_trade, call, trade_keys, count, of_trades);
  read_rows(&tpce_trade_history, call, event_keys, count * kStatuses, of_events);
  read_rows(&tpce_status_type, call, status_keys, kStatuses, of_statuses);
  int found = 0;
  for (size_t i = 0; i < count * kStatuses; i++) {
    const RdmaccNativeRow* trade = &of_trades[i / kStatuses];
    const RdmaccNativeRow* status = &of_statuses[i % kStatuses];
    if (!of_events[i].found || !trade->found || !status->found) continue;
    events[found++] = {.trade = trade_keys[i / kStatuses],
                       .symbol = trade->values[kTradeSymbol],
                       .quantity = trade->values[kTradeQuantity],
                       .status = status->values[kStatusName],
                       .date = of_events[i].values[kEventDate]};
  }
  return found;
}

/* Of every `stride`-th datum from the first on. */
Datum array_of(const Datum* first, int count, size_t stride, Oid type, int length, bool by_value,
               char align) {
  Datum values[Max(kEventsMax, kAccountsMax)];
  CHECK(count <= static_cast<int>(lengthof(values)));
  for (int i = 0; i < count; i++) values[i] = first[static_cast<size_t>(i) * stride];
  return PointerGetDatum(construct_array(values, count, type, length, by_value, align));
}

void tell_positions(const Position* positions, int count, Datum* values, bool* nulls) {
  constexpr size_t kStride = sizeof(Position) / sizeof(Datum);
  for (int i = kAccounts; i <= kAssets; i++) nulls[i] = count == 0;
  values[kAccounts] =
      array_of(&positions->account, count, kStride, INT8OID, 8, true, TYPALIGN_DOUBLE);
  values[kCash] =
      array_of(&positions->balance, count, kStride, NUMERICOID, -1, false, TYPALIGN_INT);
  values[kAssets] =
      array_of(&positions->assets, count, kStride, NUMERICOID, -1, false, TYPALIGN_INT);
}

void tell_events(const Event* events, int count, Datum* values, bool* nulls) {
  constexpr size_t kStride = sizeof(Event) / sizeof(Datum);
  for (int i = kTrades; i <= kDates; i++) nulls[i] = count == 0;
  values[kTrades] = array_of(&events->trade, count, kStride, INT8OID, 8, true, TYPALIGN_DOUBLE);
  values[kSymbols] = array_of(&events->symbol, count, kStride, TEXTOID, -1, false, TYPALIGN_INT);
  values[kQuantities] = array_of(&events->quantity, count, kStride, INT4OID, 4, true, TYPALIGN_INT);
  values[kStatusNames] =
      array_of(&events->status, count, kStride, TEXTOID, -1, false, TYPALIGN_INT);
  values[kDates] =
      array_of(&events->date, count, kStride, TIMESTAMPTZOID, 8, true, TYPALIGN_DOUBLE);
}

}  // namespace

Datum rdmacc_tpce_customer_position(PG_FUNCTION_ARGS) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE) {
    elog(ERROR, "return type must be a row type");
  }
  CHECK(descriptor->natts == kOutputs);
  if (PG_ARGISNULL(kNumber) && PG_ARGISNULL(kTaxId)) {
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND), errmsg("no customer has the tax id")));
  }
  const int64 customer = PG_ARGISNULL(kNumber) ? tpce_find_customer(PG_GETARG_DATUM(kTaxId))
                                               : PG_GETARG_INT64(kNumber);
  if (customer < 1 || customer > PG_INT64_MAX / kAccountsMax) {
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("the numbers of the customer's accounts would be out of range")));
  }
  const int wanted = PG_ARGISNULL(kAccountWanted) ? 0 : PG_GETARG_INT32(kAccountWanted);
  Datum values[kOutputs] = {};
  bool nulls[kOutputs] = {};
  Position positions[kAccountsMax];
  Event events[kEventsMax];
  TpceHolding* holdings = nullptr;
  int64 trades[kTradesTold];

  const RdmaccNativeCall first = rdmacc_native_call(ACL_SELECT);
  values[kProfile] = read_profile(&first, Int64GetDatum(customer));
  const int accounts = read_accounts(&first, customer, positions);
  const size_t held = tpce_find_holdings(customer, &holdings);
  size_t traded = 0;
  if (wanted > 0 && accounts > 0) {
    traded = tpce_find_trades(DatumGetInt64(positions[(wanted - 1) % accounts].account), trades);
  }
  const RdmaccNativeCall second = rdmacc_native_call(ACL_SELECT);
  add_assets(&second, holdings, held, positions, accounts);
  qsort(positions, static_cast<size_t>(accounts), sizeof(Position), compare_positions);
  tell_positions(positions, accounts, values, nulls);
  const int told = traded == 0 ? 0 : read_events(&second, trades, traded, events);
  qsort(events, static_cast<size_t>(told), sizeof(Event), compare_events);
  tell_events(events, told, values, nulls);
  return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}
