#include "pg_rdmacc/write_marks.h"

#include "pg_rdmacc/savepoint.h"

extern "C" {
#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

/* 128 bits of hash stand for the key: two keys of one statement do not share them. */
struct MarkKey {
  uint64 first;
  uint64 second;
};

struct Write {
  CommandId command;
  SubTransactionId subtransaction;
  Write* before; /* by an enclosing subtransaction: counts again when this one is rolled back */
};

struct Mark {
  MarkKey key;
  Write* newest;
};

constexpr int64 kMarksInitial = 128;
constexpr uint64 kSecondSeed = 0x9e3779b97f4a7c15ULL;

HTAB* marks;
MemoryContext memory; /* of the marks */

MarkKey mark_key(uint32 table, BridgeBytes key) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data);
  const int size = static_cast<int>(key.size);
  return {.first = hash_bytes_extended(bytes, size, table),
          .second = hash_bytes_extended(bytes, size, table ^ kSecondSeed)};
}

void create(void) {
  memory =
      AllocSetContextCreate(TopTransactionContext, "rdmacc write marks", ALLOCSET_DEFAULT_SIZES);
  HASHCTL control = {};
  control.keysize = sizeof(MarkKey);
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

}  // namespace

void rdmacc_write_mark(uint32 table, BridgeBytes key, CommandId command) {
  if (marks == nullptr) create();
  const MarkKey wanted = mark_key(table, key);
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
  if (marks == nullptr) return false;
  const MarkKey wanted = mark_key(table, key);
  auto* mark = static_cast<Mark*>(hash_search(marks, &wanted, HASH_FIND, nullptr));
  const Write* write = mark != nullptr ? live_write(mark) : nullptr;
  if (write == nullptr || write->command < command) return false;
  *at = write->command;
  return true;
}

void rdmacc_write_marks_forget(void) {
  if (marks != nullptr) MemoryContextDelete(memory);
  marks = nullptr;
}
