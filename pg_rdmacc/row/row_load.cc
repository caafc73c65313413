#include "pg_rdmacc/row/row_load.h"

#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "miscadmin.h"
}

namespace {

/* How far the index of the table that is loaded has been made to grow. */
struct Growth {
  uint32 transaction;
  uint32 table;
  uint64 rows;
  uint64 expected;
};

constexpr uint64 kExpectedAtFirst = 4096, kGrowthFactor = 2;

BridgeBytes bytes_between(const RdmaccRowLoad* load, int begin, int end) {
  CHECK(0 <= begin && begin <= end && end <= load->bytes.len);
  return {load->bytes.data + begin, static_cast<size_t>(end - begin)};
}

void log_batch(const BridgeRows* rows) {
  BridgeWrite writes[RDMACC_LOAD_ROWS_MAX];
  for (size_t i = 0; i < rows->count; i++) {
    writes[i] = {rows->table, false, rows->keys[i], rows->rows[i]};
  }
  rdmacc_log_load(writes, rows->count);
}

}  // namespace

bool rdmacc_may_load_in_place(uint32 table) {
  if (!rdmacc_created_at_this_level(table)) return false;
  if (!rdmacc_may_show_rows_early()) return false;
  bool possible = false;
  rdmacc_enter();
  bridge_start_ask_for_load(table, &possible);
  rdmacc_pump();
  rdmacc_check("could not begin a load", nullptr);
  return possible;
}

bool rdmacc_is_still_empty(uint32 table) {
  return !rdmacc_was_loaded(table) && rdmacc_may_load_in_place(table);
}

/* An index that grows under a load is in its way, and the other way round: groups are split beside
 * the batch that fills them. So it grows between two batches, for some times the rows that came. */
void rdmacc_expect_more_rows(uint32 table, uint64 more) {
  static Growth growth;
  if (growth.transaction != rdmacc_transaction_number() || growth.table != table) {
    growth = {.transaction = rdmacc_transaction_number(), .table = table, .rows = 0, .expected = 0};
  }
  growth.rows += more;
  if (growth.rows <= growth.expected || growth.rows < kExpectedAtFirst / kGrowthFactor) return;
  growth.expected = Max(kExpectedAtFirst, growth.rows * kGrowthFactor);
  bridge_start_expect_rows(table, growth.expected);
  rdmacc_pump();
  rdmacc_check("could not prepare a load", nullptr);
}

void rdmacc_settle_load(uint32 table) {
  bridge_start_expect_rows(table, 0);
  rdmacc_pump();
  rdmacc_check("could not end a load", nullptr);
}

void rdmacc_log_load(const BridgeWrite* writes, size_t count) {
  if (count == 0 || !rdmacc_rows_are_durable()) return;
  rdmacc_log_loaded(writes, count);
}

void rdmacc_load_target(uint32 table, const RdmaccKeyLayout* layout, RdmaccLoadTarget* target) {
  CHECK(table != RDMACC_NO_TABLE);
  target->table = table;
  target->check_absent = layout->number != 0;
  target->in_place = rdmacc_may_load_in_place(table);
}

void rdmacc_load_begin(RdmaccRowLoad* load, Relation relation, const RdmaccLoadTarget* target) {
  load->relation = relation;
  load->target = *target;
  load->count = 0;
  load->placed = false;
  initStringInfo(&load->bytes);
}

bool rdmacc_load_add(RdmaccRowLoad* load, BridgeBytes key, BridgeBytes row) {
  CHECK(load->count < RDMACC_LOAD_ROWS_MAX && key.size > 0);
  appendBinaryStringInfo(&load->bytes, key.data, static_cast<int>(key.size));
  load->key_ends[load->count] = load->bytes.len;
  appendBinaryStringInfo(&load->bytes, row.data, static_cast<int>(row.size));
  load->row_ends[load->count] = load->bytes.len;
  load->count++;
  return load->count == RDMACC_LOAD_ROWS_MAX || load->bytes.len >= RDMACC_LOAD_BYTES_MAX;
}

BridgeBytes rdmacc_load_key(const RdmaccRowLoad* load, int number) {
  CHECK(number >= 0 && number < load->count);
  const int begin = number == 0 ? 0 : load->row_ends[number - 1];
  return bytes_between(load, begin, load->key_ends[number]);
}

BridgeBytes rdmacc_load_row(const RdmaccRowLoad* load, int number) {
  CHECK(number >= 0 && number < load->count);
  return bytes_between(load, load->key_ends[number], load->row_ends[number]);
}

int rdmacc_load_flush(RdmaccRowLoad* load, CommandId command) {
  if (load->count == 0) return -1;
  CHECK_FOR_INTERRUPTS();
  BridgeBytes keys[RDMACC_LOAD_ROWS_MAX];
  BridgeBytes rows[RDMACC_LOAD_ROWS_MAX];
  for (int i = 0; i < load->count; i++) {
    keys[i] = rdmacc_load_key(load, i);
    rows[i] = rdmacc_load_row(load, i);
  }
  const BridgeRows all = {.table = load->target.table,
                          .check_absent = load->target.check_absent,
                          .keys = keys,
                          .rows = rows,
                          .count = static_cast<size_t>(load->count)};
  size_t duplicate = 0;
  rdmacc_enter_write(command);
  if (load->target.in_place) {
    rdmacc_expect_more_rows(load->target.table, all.count);
    bridge_start_load_rows(&all, &load->target.in_place, &duplicate);
  } else {
    bridge_start_insert_many(&all, &duplicate);
  }
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kDuplicateKey) return static_cast<int>(duplicate);
  rdmacc_check("could not insert rows", RelationGetRelationName(load->relation));
  if (load->target.in_place) {
    load->placed = true;
    rdmacc_note_loaded(load->target.table);
    log_batch(&all);
  }
  return -1;
}

void rdmacc_load_reset(RdmaccRowLoad* load) {
  resetStringInfo(&load->bytes);
  load->count = 0;
}

void rdmacc_load_end(RdmaccRowLoad* load) {
  if (load->placed) rdmacc_settle_load(load->target.table);
  pfree(load->bytes.data);
  memset(load, 0, sizeof(*load));
}
