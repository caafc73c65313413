#include "pg_rdmacc/row/row_load.h"

#include <algorithm>

#include "pg_rdmacc/relation/fitted_table.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
}

namespace {

/* How far the index of the table that is loaded has been made to grow. */
struct Growth {
  uint32 transaction;
  uint32 table;
  uint64 rows;
  uint64 expected;
};

/* The batch that the nodes put in place while the session goes on. One that has failed stays under
 * way until the level that loads it is rolled back, whatever has caught the error. */
struct Sent {
  bool under_way;
  uint32 table;
  int nest;
  Oid relation;
  NameData name;
  RdmaccRaiseOfLoad raise;
  const void* context;
  int count;
  char* bytes; /* keys and rows, in TopTransactionContext */
  int key_ends[RDMACC_LOAD_ROWS_MAX];
  int row_ends[RDMACC_LOAD_ROWS_MAX];
};
Sent sent;

constexpr int kRowsPerStep = 16;              /* between looks for room in the rings to the nodes */
constexpr int kRowsToFit = 64, kLongRows = 8; /* one of 8 may be longer than its record */
constexpr uint64 kExpectedAtFirst = 4096, kGrowthShare = 4;

BridgeBytes bytes_between(const RdmaccRowLoad* load, int begin, int end) {
  CHECK(0 <= begin && begin <= end && end <= load->bytes.len);
  return {load->bytes.data + begin, static_cast<size_t>(end - begin)};
}

BridgeBytes load_row(const RdmaccRowLoad* load, int number) {
  CHECK(number >= 0 && number < load->count);
  return bytes_between(load, load->key_ends[number], load->row_ends[number]);
}

void note_sent(const RdmaccRowLoad* load) {
  CHECK(!sent.under_way && load->count > 0);
  sent.under_way = true;
  sent.table = load->target.table;
  sent.nest = GetCurrentTransactionNestLevel();
  sent.relation = RelationGetRelid(load->relation);
  namestrcpy(&sent.name, RelationGetRelationName(load->relation));
  sent.raise = load->raise;
  sent.context = load->context;
  sent.count = load->count;
  const auto size = static_cast<Size>(load->bytes.len);
  sent.bytes = static_cast<char*>(MemoryContextAlloc(TopTransactionContext, size));
  memcpy(sent.bytes, load->bytes.data, size);
  memcpy(sent.key_ends, load->key_ends, sizeof(int) * static_cast<Size>(load->count));
  memcpy(sent.row_ends, load->row_ends, sizeof(int) * static_cast<Size>(load->count));
}

BridgeRow sent_row(int number) {
  CHECK(sent.under_way && number >= 0 && number < sent.count);
  const int begin = number == 0 ? 0 : sent.row_ends[number - 1];
  const int key_end = sent.key_ends[number], end = sent.row_ends[number];
  CHECK(begin < key_end && key_end <= end);
  return {.found = true,
          .key = {sent.bytes + begin, static_cast<size_t>(key_end - begin)},
          .row = {sent.bytes + key_end, static_cast<size_t>(end - key_end)},
          .version = 0,
          .node = 0};
}

/* What others leave may be room for them soon, where rows are put in place. */
void check_rows(const char* name) {
  if (sent.under_way && bridge_error()->code == rdmacc::Code::kNoSpace) rdmacc_note_memory_short();
  rdmacc_check("could not insert rows", name);
}

/* Once its rows are in place: a checkpoint that begins behind a record has its rows in memory. */
void log_sent(void) {
  BridgeWrite writes[RDMACC_LOAD_ROWS_MAX];
  for (int i = 0; i < sent.count; i++) {
    const BridgeRow row = sent_row(i);
    writes[i] = {sent.table, false, row.key, row.row};
  }
  rdmacc_log_load(writes, static_cast<size_t>(sent.count));
}

/* Of a record that has room for most rows of the batch; of a few rows 0. */
uint32 record_bytes(const RdmaccRowLoad* load) {
  if (load->count < kRowsToFit) return 0;
  uint32 bytes[RDMACC_LOAD_ROWS_MAX];
  int begin = 0;
  for (int i = 0; i < load->count; i++) {
    bytes[i] = static_cast<uint32>(rdmacc::kKeyLengthBytes) +
               static_cast<uint32>(load->row_ends[i] - begin);
    begin = load->row_ends[i];
  }
  uint32* most = bytes + load->count - load->count / kLongRows;
  CHECK(most < bytes + load->count);
  std::nth_element(bytes, most, bytes + load->count);
  return *most;
}

/* Does not return. */
void raise_with_slot(RdmaccRaiseOfLoad raise, Relation relation, const void* context,
                     const BridgeRow* row, bool late) {
  TupleTableSlot* slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  rdmacc_slot_store(slot, relation, row, nullptr);
  const RdmaccLoadedTwice twice = {.key = row->key, .slot = slot, .late = late};
  raise(relation, context, &twice);
  CHECK(false);
}

void raise_of_sent(size_t duplicate) {
  CHECK(duplicate < RDMACC_LOAD_ROWS_MAX);
  const BridgeRow row = sent_row(static_cast<int>(duplicate));
  Relation relation = RelationIdGetRelation(sent.relation);
  if (!RelationIsValid(relation)) elog(ERROR, "could not open relation %u", sent.relation);
  raise_with_slot(sent.raise, relation, sent.context, &row, true);
}

void subtransaction_committed(int nest) {
  if (sent.under_way) sent.nest = Min(sent.nest, nest - 1);
}

/* The table goes with the subtransaction that has made it. */
void subtransaction_aborted(int nest) {
  if (!sent.under_way || sent.nest < nest) return;
  bridge_give_up_load();
  sent.under_way = false;
}

/* Whatever loads says when it has ended. What fails here has failed before, and its error was
 * caught at a level within the one that loads. */
void before_commit(void) { rdmacc_load_finish(); }

void forget(void) { sent.under_way = false; }

}  // namespace

bool rdmacc_may_load_beforehand(uint32 table) {
  if (!rdmacc_may_show_rows_early()) return false;
  rdmacc_load_finish();
  bool possible = false;
  rdmacc_enter();
  bridge_start_ask_for_load(table, &possible);
  rdmacc_pump();
  rdmacc_check("could not begin a load", nullptr);
  return possible;
}

bool rdmacc_may_load_in_place(uint32 table) {
  return rdmacc_created_at_this_level(table) && rdmacc_may_load_beforehand(table);
}

bool rdmacc_is_still_empty(uint32 table) {
  return rdmacc_loaded_rows(table) == 0 && rdmacc_may_load_in_place(table);
}

/* An index that grows under a load is in its way, and the other way round: groups are split beside
 * the batch that fills them. So it grows between two batches, for a quarter more rows than came: it
 * grows by doubling, and what is too much of that stays. */
void rdmacc_expect_more_rows(uint32 table, uint64 more) {
  static Growth growth;
  if (growth.transaction != rdmacc_transaction_number() || growth.table != table) {
    growth = {.transaction = rdmacc_transaction_number(), .table = table, .rows = 0, .expected = 0};
  }
  growth.rows += more;
  if (growth.rows <= growth.expected || growth.rows < kExpectedAtFirst / 2) return;
  growth.expected = Max(kExpectedAtFirst, growth.rows + growth.rows / kGrowthShare);
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

void rdmacc_load_begin(RdmaccRowLoad* load, Relation relation, const RdmaccLoadTarget* target,
                       RdmaccRaiseOfLoad raise, const void* context) {
  CHECK(raise != nullptr);
  load->relation = relation;
  load->target = *target;
  load->raise = raise;
  load->context = context;
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
  if (sent.under_way && load->count % kRowsPerStep == 0) bridge_go_on();
  return load->count == RDMACC_LOAD_ROWS_MAX || load->bytes.len >= RDMACC_LOAD_BYTES_MAX;
}

void rdmacc_load_fit(RdmaccRowLoad* load, const RdmaccKeyLayout* layout) {
  const uint32 table = load->target.table;
  if (!load->target.in_place || rdmacc_loaded_rows(table) > 0) return;
  /* A function may have used it since the load was prepared. */
  if (!rdmacc_is_still_empty(table)) return;
  load->target.table = rdmacc_fit_table(load->relation, table, layout, record_bytes(load));
}

BridgeBytes rdmacc_load_key(const RdmaccRowLoad* load, int number) {
  CHECK(number >= 0 && number < load->count);
  const int begin = number == 0 ? 0 : load->row_ends[number - 1];
  return bytes_between(load, begin, load->key_ends[number]);
}

void rdmacc_load_finish(void) {
  if (!sent.under_way) return;
  size_t duplicate = 0;
  bridge_start_finish_load(&duplicate);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kDuplicateKey) raise_of_sent(duplicate);
  check_rows(NameStr(sent.name));
  log_sent();
  sent.under_way = false;
  pfree(sent.bytes);
}

void rdmacc_load_flush(RdmaccRowLoad* load, CommandId command) {
  if (load->count == 0) return;
  CHECK_FOR_INTERRUPTS();
  BridgeBytes keys[RDMACC_LOAD_ROWS_MAX];
  BridgeBytes rows[RDMACC_LOAD_ROWS_MAX];
  for (int i = 0; i < load->count; i++) {
    keys[i] = rdmacc_load_key(load, i);
    rows[i] = load_row(load, i);
  }
  const BridgeRows all = {.table = load->target.table,
                          .check_absent = load->target.check_absent,
                          .keys = keys,
                          .rows = rows,
                          .count = static_cast<size_t>(load->count)};
  size_t duplicate = 0;
  const bool posts = load->target.in_place;
  rdmacc_enter_write(command);
  if (posts) {
    rdmacc_load_finish(); /* the batch before, while this one was made */
    rdmacc_expect_more_rows(load->target.table, all.count);
    note_sent(load);
    bridge_start_post_load(&all, &load->target.in_place, &duplicate);
  } else {
    bridge_start_insert_many(&all, &duplicate);
  }
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kDuplicateKey) {
    CHECK(duplicate < all.count);
    const BridgeRow row = {
        .found = true, .key = keys[duplicate], .row = rows[duplicate], .version = 0, .node = 0};
    raise_with_slot(load->raise, load->relation, load->context, &row, false);
  }
  check_rows(RelationGetRelationName(load->relation));
  if (!posts) return;
  if (!load->target.in_place) return forget(); /* they are the transaction's own writes */
  load->placed = true;
  rdmacc_note_loaded(load->target.table, all.count);
}

void rdmacc_load_reset(RdmaccRowLoad* load) {
  resetStringInfo(&load->bytes);
  load->count = 0;
}

void rdmacc_load_end(RdmaccRowLoad* load) {
  if (load->placed) {
    rdmacc_load_finish();
    rdmacc_settle_load(load->target.table);
  }
  pfree(load->bytes.data);
  memset(load, 0, sizeof(*load));
}

const RdmaccTransactionPart rdmacc_row_load_part = {
    .before_commit = before_commit,
    .subtransaction_committed = subtransaction_committed,
    .subtransaction_aborted = subtransaction_aborted,
    .forget = forget};
