#include "pg_rdmacc/row/write_marks.h"

#include "pg_rdmacc/codec/key_id.h"
#include "pg_rdmacc/xact/savepoint.h"

extern "C" {
#include "access/xact.h"
#include "lib/stringinfo.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

struct Write {
  CommandId command;
  SubTransactionId subtransaction;
  Write* before; /* by an enclosing subtransaction: counts again when this one is rolled back */
};

struct Mark {
  RdmaccKeyId key;
  Write* newest;
};

constexpr int64 kMarksInitial = 128;

bool marks_wanted = true;
HTAB* marks;
MemoryContext memory; /* of the marks */

void create(void) {
  CHECK(marks == nullptr && TopTransactionContext != nullptr);
  memory =
      AllocSetContextCreate(TopTransactionContext, "rdmacc write marks", ALLOCSET_DEFAULT_SIZES);
  HASHCTL control = {};
  control.keysize = sizeof(RdmaccKeyId);
  control.entrysize = sizeof(Mark);
  control.hcxt = memory;
  marks = hash_create("rdmacc write marks", kMarksInitial, &control,
                      HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* The newest write that was not rolled back. */
Write* live_write(Mark* mark) {
  while (mark->newest != nullptr && rdmacc_subtransaction_aborted(mark->newest->subtransaction)) {
    Write* gone = mark->newest;
    mark->newest = gone->before;
    pfree(gone);
  }
  return mark->newest;
}

/* The row that was updated last, until another is inserted; by its table and key. */
Oid updated_relation;
StringInfoData updated_key;

}  // namespace

void rdmacc_write_mark(uint32 table, BridgeBytes key, CommandId command) {
  CHECK(command != InvalidCommandId && key.size > 0);
  if (!marks_wanted) return;
  if (marks == nullptr) create();
  const RdmaccKeyId wanted = rdmacc_key_id(table, key);
  const SubTransactionId subtransaction = GetCurrentSubTransactionId();
  bool found = false;
  auto* mark = static_cast<Mark*>(hash_search(marks, &wanted, HASH_ENTER, &found));
  if (!found) mark->newest = nullptr;
  Write* write = live_write(mark);
  if (write == nullptr || write->subtransaction != subtransaction) {
    auto* made = static_cast<Write*>(MemoryContextAlloc(memory, sizeof(Write)));
    made->subtransaction = subtransaction;
    made->before = write;
    mark->newest = write = made;
  }
  write->command = command;
}

bool rdmacc_write_marked_since(uint32 table, BridgeBytes key, CommandId command, CommandId* at) {
  CHECK(at != nullptr);
  if (marks == nullptr) return false;
  const RdmaccKeyId wanted = rdmacc_key_id(table, key);
  auto* mark = static_cast<Mark*>(hash_search(marks, &wanted, HASH_FIND, nullptr));
  const Write* write = mark != nullptr ? live_write(mark) : nullptr;
  if (write == nullptr || write->command < command) return false;
  *at = write->command;
  return true;
}

bool rdmacc_write_marks_want(bool wanted) {
  const bool before = marks_wanted;
  marks_wanted = wanted;
  return before;
}

void rdmacc_write_marks_forget(void) {
  if (marks != nullptr) MemoryContextDelete(memory);
  marks = nullptr;
}

void rdmacc_note_updated(Relation relation, BridgeBytes key) {
  CHECK(key.data != nullptr && key.size > 0);
  if (updated_key.data == nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(TopMemoryContext);
    initStringInfo(&updated_key);
    MemoryContextSwitchTo(previous);
  }
  updated_relation = RelationGetRelid(relation);
  resetStringInfo(&updated_key);
  appendBinaryStringInfo(&updated_key, key.data, static_cast<int>(key.size));
}

void rdmacc_note_inserted(void) { updated_relation = InvalidOid; }

bool rdmacc_wrote_by_update(Relation relation, BridgeBytes key) {
  return updated_relation == RelationGetRelid(relation) &&
         static_cast<size_t>(updated_key.len) == key.size &&
         memcmp(updated_key.data, key.data, key.size) == 0;
}

const RdmaccTransactionPart rdmacc_write_marks_part = {.forget = rdmacc_write_marks_forget};
