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
constexpr int kFew = 8;

bool marks_wanted = true;
/* Most transactions write a row or a few: these are found one by one, and nothing is allocated. */
Mark few_marks[kFew];
int few_marks_used;
Write few_writes[kFew];
int few_writes_used;
CommandId newest_command; /* of the marks */
HTAB* marks;              /* all of them, where they are more than a few */
MemoryContext memory;     /* of the marks, and of further writes; NULL: there is none */

MemoryContext memory_of_marks(void) {
  CHECK(TopTransactionContext != nullptr);
  if (memory == nullptr) {
    memory =
        AllocSetContextCreate(TopTransactionContext, "rdmacc write marks", ALLOCSET_DEFAULT_SIZES);
  }
  return memory;
}

void create(void) {
  CHECK(marks == nullptr);
  HASHCTL control = {};
  control.keysize = sizeof(RdmaccKeyId);
  control.entrysize = sizeof(Mark);
  control.hcxt = memory_of_marks();
  HTAB* made = hash_create("rdmacc write marks", kMarksInitial, &control,
                           HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
  for (int i = 0; i < few_marks_used; i++) {
    auto* mark = static_cast<Mark*>(hash_search(made, &few_marks[i].key, HASH_ENTER, nullptr));
    mark->newest = few_marks[i].newest;
  }
  marks = made; /* with all of them: an error before is no error of theirs */
}

bool is_key(const RdmaccKeyId* one, const RdmaccKeyId* other) {
  return one->first == other->first && one->second == other->second;
}

/* NULL: there is none. */
Mark* find(const RdmaccKeyId* key) {
  if (marks != nullptr) return static_cast<Mark*>(hash_search(marks, key, HASH_FIND, nullptr));
  for (int i = 0; i < few_marks_used; i++) {
    if (is_key(&few_marks[i].key, key)) return &few_marks[i];
  }
  return nullptr;
}

/* There was none. */
Mark* add(const RdmaccKeyId* key) {
  Mark* mark = nullptr;
  if (marks == nullptr && few_marks_used == kFew) create();
  if (marks == nullptr) {
    mark = &few_marks[few_marks_used++];
    mark->key = *key;
  } else {
    mark = static_cast<Mark*>(hash_search(marks, key, HASH_ENTER, nullptr));
  }
  mark->newest = nullptr;
  return mark;
}

Write* new_write(void) {
  if (few_writes_used < kFew) return &few_writes[few_writes_used++];
  return static_cast<Write*>(MemoryContextAlloc(memory_of_marks(), sizeof(Write)));
}

void free_write(Write* write) {
  if (write < few_writes || write >= few_writes + kFew) pfree(write);
}

/* The newest write that was not rolled back. */
Write* live_write(Mark* mark) {
  while (mark->newest != nullptr && rdmacc_subtransaction_aborted(mark->newest->subtransaction)) {
    Write* gone = mark->newest;
    mark->newest = gone->before;
    free_write(gone);
  }
  return mark->newest;
}

void forget(void) {
  if (memory != nullptr) MemoryContextDelete(memory);
  memory = nullptr;
  marks = nullptr;
  few_marks_used = few_writes_used = 0;
  newest_command = FirstCommandId;
}

/* The row that was updated last, until another is inserted; by its table and key. */
Oid updated_relation;
StringInfoData updated_key;

}  // namespace

void rdmacc_write_mark(uint32 table, BridgeBytes key, CommandId command) {
  CHECK(command != InvalidCommandId && key.size > 0);
  if (!marks_wanted) return;
  const RdmaccKeyId wanted = rdmacc_key_id(table, key);
  const SubTransactionId subtransaction = GetCurrentSubTransactionId();
  Mark* mark = find(&wanted);
  if (mark == nullptr) mark = add(&wanted);
  Write* write = live_write(mark);
  if (write == nullptr || write->subtransaction != subtransaction) {
    Write* made = new_write();
    made->subtransaction = subtransaction;
    made->before = write;
    mark->newest = write = made;
  }
  write->command = command;
  newest_command = Max(newest_command, command);
}

bool rdmacc_write_marked_since(uint32 table, BridgeBytes key, CommandId command, CommandId* at) {
  CHECK(at != nullptr);
  if (few_marks_used == 0) return false; /* those are the first */
  const RdmaccKeyId wanted = rdmacc_key_id(table, key);
  Mark* mark = find(&wanted);
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

void rdmacc_write_marks_forget_before(CommandId command) {
  if (few_marks_used > 0 && newest_command < command) forget();
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

const RdmaccTransactionPart rdmacc_write_marks_part = {.forget = forget};
