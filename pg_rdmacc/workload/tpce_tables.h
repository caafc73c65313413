/* TPC-E's tables, as rdmacc.tpce_create() makes them. */
#pragma once
#include "pg_rdmacc/workload/native_table.h"

enum AccountColumn { kAccountCustomer = 2, kAccountBalance = 5 };
enum LastTradeColumn { kLastTradeDate = 1, kLastTradePrice, kLastTradeOpening, kLastTradeVolume };
enum TradeColumn { kTradeSymbol = 5, kTradeQuantity };
enum EventColumn { kEventDate = 2 };
enum StatusColumn { kStatusName = 1 };

constexpr int kAccountsMax = 10; /* of a customer, whose numbers follow each other */
constexpr int kTradesTold = 10;  /* of an account, the last ones */
constexpr int kStatuses = 5;     /* that TPC-E knows */
extern const char* const tpce_statuses[kStatuses];

extern RdmaccNativeTable tpce_customer, tpce_account, tpce_last_trade, tpce_trade,
    tpce_trade_history, tpce_status_type;

/* Statements, for before or between calls. */

/* P0002 where no customer has the tax id, a text. */
int64 tpce_find_customer(Datum tax_id);

typedef struct TpceHolding {
  int64 account;
  Datum symbol;
  int32 quantity;
} TpceHolding;

/* What the customer's accounts hold, palloc'ed; their number. */
size_t tpce_find_holdings(int64 customer, TpceHolding** holdings);

/* The last trades of the account, at most kTradesTold. */
size_t tpce_find_trades(int64 account, int64* trades);
