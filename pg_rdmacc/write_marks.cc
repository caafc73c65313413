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

struct Mark {
  MarkKey key;
  CommandId command;
  SubTransactionId subtransaction;
};

constexpr int64 kMarksInitial = 128;
constexpr uint64 kSecondSeed = 0x9e3779b97f4a7c15ULL;

HTAB* marks;

MarkKey mark_key(uint32 table, BridgeBytes key) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data);
  const int size = static_cast<int>(key.size);
  return {.first = hash_bytes_extended(bytes, size, table),
          .second = hash_bytes_extended(bytes, size, table ^ kSecondSeed)};
}

void create(void) {
  HASHCTL control = {};
  control.keysize = sizeof(MarkKey);
  control.entrysize = sizeof(Mark);
  control.hcxt = TopTransactionContext;
  marks = hash_create("rdmacc write marks", kMarksInitial, &control,
                      HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

}  // namespace

void rdmacc_write_mark(uint32 table, BridgeBytes key, CommandId command) {
  if (marks == nullptr) create();
  const MarkKey wanted = mark_key(table, key);
  auto* mark = static_cast<Mark*>(hash_search(marks, &wanted, HASH_ENTER, nullptr));
  mark->command = command;
  mark->subtransaction = GetCurrentSubTransactionId();
}

bool rdmacc_write_marked_since(uint32 table, BridgeBytes key, CommandId command, CommandId* at) {
  if (marks == nullptr) return false;
  const MarkKey wanted = mark_key(table, key);
  const auto* mark = static_cast<const Mark*>(hash_search(marks, &wanted, HASH_FIND, nullptr));
  if (mark == nullptr || mark->command < command) return false;
  if (rdmacc_subtransaction_aborted(mark->subtransaction)) return false;
  *at = mark->command;
  return true;
}

void rdmacc_write_marks_forget(void) {
  if (marks != nullptr) hash_destroy(marks);
  marks = nullptr;
}
