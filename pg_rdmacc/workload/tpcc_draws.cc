/* rdmacc.tpcc_draw_lines(): what the terminal that enters a TPC-C order draws (clause 2.4.1), for
 * every way to enter it. */
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

PGDLLEXPORT Datum rdmacc_tpcc_draw_lines(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_tpcc_draw_lines);
}

namespace {

constexpr int kLinesMin = 5, kLinesMax = 15;
constexpr int kItemsA = 8191; /* clause 2.1.6, for item numbers; its constant C is 0 */
constexpr int kQuantityMax = 10;
constexpr int kNoItem = -1;

/* SQL's random(), so that setseed() makes it repeat. */
double draw() {
  LOCAL_FCINFO(call, 0);
  InitFunctionCallInfoData(*call, nullptr, 0, InvalidOid, nullptr, nullptr);
  return DatumGetFloat8(drandom(call));
}

int draw_below(int count) { return static_cast<int>(draw() * count); }

int draw_item(int all_items) {
  return (draw_below(kItemsA + 1) | (1 + draw_below(all_items))) % all_items + 1;
}

bool is_among(const Datum* numbers, int count, int number) {
  for (int i = 0; i < count; i++) {
    if (DatumGetInt32(numbers[i]) == number) return true;
  }
  return false;
}

/* Another one than `home`. */
int draw_other_warehouse(int home, int warehouses) {
  const int other = 1 + draw_below(warehouses - 1);
  return other >= home ? other + 1 : other;
}

Datum array_of(Datum* numbers, int count) {
  return PointerGetDatum(
      construct_array(numbers, count, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

}  // namespace

Datum rdmacc_tpcc_draw_lines(PG_FUNCTION_ARGS) {
  const int home = PG_GETARG_INT32(0), warehouses = PG_GETARG_INT32(1);
  const int all_items = PG_GETARG_INT32(2);
  const int remote_percent = PG_GETARG_INT32(3), rollback_percent = PG_GETARG_INT32(4);
  if (warehouses < 1 || all_items < kLinesMax) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("lines are drawn from at least one warehouse and %d items", kLinesMax)));
  }
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE) {
    elog(ERROR, "the function returns no row");
  }
  const int lines = kLinesMin + draw_below(kLinesMax - kLinesMin + 1);
  Datum items[kLinesMax], supplies[kLinesMax], quantities[kLinesMax];
  for (int i = 0; i < lines; i++) {
    int item;
    do {
      CHECK_FOR_INTERRUPTS();
      item = draw_item(all_items);
    } while (is_among(items, i, item));
    items[i] = Int32GetDatum(item);
    const bool remote = warehouses > 1 && draw() * 100 < remote_percent;
    supplies[i] = Int32GetDatum(remote ? draw_other_warehouse(home, warehouses) : home);
    quantities[i] = Int32GetDatum(1 + draw_below(kQuantityMax));
  }
  if (draw() * 100 < rollback_percent) items[lines - 1] = Int32GetDatum(kNoItem);
  Datum values[] = {array_of(items, lines), array_of(supplies, lines), array_of(quantities, lines)};
  bool nulls[] = {false, false, false};
  return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}
