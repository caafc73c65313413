#include "pg_rdmacc/xact/given_numbers.h"

extern "C" {
#include "nodes/pg_list.h"
#include "utils/memutils.h"
}

namespace {

struct Sequence {
  Oid sequence;      /* InvalidOid: none, for lastval() */
  bool known_before; /* the number was asked for before an attempt drew one */
  int64 before;
  bool is_drawn; /* by an attempt */
  int64 drawn;   /* last */
  bool is_given; /* to this attempt */
  int64 given;   /* last */
};

MemoryContext memory; /* NULL before the first one */
List* sequences;      /* Sequence*, in `memory` */
Sequence* drawn_last;
Sequence* given_last; /* to this attempt */
bool again;
bool kept;
bool refused; /* a number that the attempt has asked for: a function may have caught the error */

Sequence* find_or_add(Oid sequence) {
  ListCell* cell;
  foreach (cell, sequences) {
    auto* one = static_cast<Sequence*>(lfirst(cell));
    if (one->sequence == sequence) return one;
  }
  if (memory == nullptr) {
    memory = AllocSetContextCreate(TopMemoryContext, "rdmacc numbers", ALLOCSET_SMALL_SIZES);
  }
  const MemoryContext previous = MemoryContextSwitchTo(memory);
  auto* added = static_cast<Sequence*>(palloc0(sizeof(Sequence)));
  added->sequence = sequence;
  sequences = lappend(sequences, added);
  MemoryContextSwitchTo(previous);
  return added;
}

bool session_tells(const Sequence* one) { return one->is_given && one->given == one->drawn; }

/* Of the sequences that an attempt has drawn from last, and this one was given of, if there are.
 * What is drawn without a note has come later. */
bool tell(Sequence* asked, const Sequence* drawn, const Sequence* given, int64* number) {
  if (drawn == nullptr || drawn->drawn != *number) {
    asked->known_before = asked->known_before || drawn == nullptr;
    if (drawn == nullptr) asked->before = *number;
    return true;
  }
  if (given != nullptr) {
    *number = given->given;
    return true;
  }
  refused = refused || !asked->known_before;
  *number = asked->before;
  return asked->known_before;
}

}  // namespace

void rdmacc_number_given(Oid sequence, int64 number) {
  CHECK(OidIsValid(sequence));
  Sequence* one = find_or_add(sequence);
  one->is_given = true;
  one->given = number;
  given_last = one;
}

void rdmacc_number_drawn(Oid sequence, int64 number) {
  rdmacc_number_given(sequence, number);
  CHECK(given_last->sequence == sequence);
  drawn_last = given_last;
  drawn_last->is_drawn = true;
  drawn_last->drawn = number;
}

bool rdmacc_current_number(Oid sequence, int64* number) {
  CHECK(OidIsValid(sequence));
  Sequence* one = find_or_add(sequence);
  return tell(one, one->is_drawn ? one : nullptr, one->is_given ? one : nullptr, number);
}

bool rdmacc_last_number(int64* number) {
  return tell(find_or_add(InvalidOid), drawn_last, given_last, number);
}

void rdmacc_numbers_keep(bool keep) {
  kept = keep;
  rdmacc_numbers_forget();
}

bool rdmacc_numbers_are_kept(void) { return kept; }

void rdmacc_numbers_begin_attempt(void) {
  ListCell* cell;
  foreach (cell, sequences) static_cast<Sequence*>(lfirst(cell))->is_given = false;
  given_last = nullptr;
  refused = false;
  again = true;
}

bool rdmacc_numbers_are_settled(void) {
  if (!again) return true;
  if (refused || given_last != drawn_last) return false;
  ListCell* cell;
  foreach (cell, sequences) {
    const auto* one = static_cast<const Sequence*>(lfirst(cell));
    if (one->is_drawn && !session_tells(one)) return false;
  }
  return true;
}

bool rdmacc_numbers_are_given_again(void) { return again; }

void rdmacc_numbers_forget(void) {
  if (kept) return;
  again = refused = false;
  drawn_last = given_last = nullptr;
  if (sequences == NIL) return;
  sequences = NIL;
  MemoryContextReset(memory);
}
