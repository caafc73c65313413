/* Scan keys as ranges of entries. The leading columns that equality fixes make a prefix, with
 * = ANY one for each element; the next column may add bounds. Other conditions are left to the
 * caller, which has the row: the ranges are lossy then.
 *
 * Ranges come in the order of the index, each once, and do not overlap. */
#pragma once
#include "pg_rdmacc/index/index_entries.h"

extern "C" {
#include "access/skey.h"

/* The values that one leading column may have: encoded, sorted, each once. */
typedef struct RdmaccColumnChoice {
  int count;
  BridgeBytes* values;
  int present; /* that of the range at hand */
} RdmaccColumnChoice;

typedef struct RdmaccIndexRanges {
  int choice_count; /* columns that are fixed */
  RdmaccColumnChoice choices[INDEX_MAX_KEYS];
  StringInfoData low_tail; /* of the column behind them */
  StringInfoData high_tail;
  bool high_tail_bounded; /* else up to the end of the prefix */
  StringInfoData low;     /* the range at hand */
  StringInfoData high;
  bool lossy;
  bool empty; /* no entry can match */
} RdmaccIndexRanges;

/* Everything is palloc'ed in the current context. */
void rdmacc_index_ranges_begin(RdmaccIndexRanges* ranges, const RdmaccIndex* index,
                               const ScanKeyData* keys, int key_count);

/* To the first range of a scan in this direction, or the one after. False: there is none. */
bool rdmacc_index_ranges_first(RdmaccIndexRanges* ranges, bool backward);
bool rdmacc_index_ranges_next(RdmaccIndexRanges* ranges, bool backward);

BridgeRange rdmacc_index_range(const RdmaccIndexRanges* ranges);
}
