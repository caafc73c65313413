#include "pg_rdmacc/query/held_rows.h"

extern "C" {
#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

namespace {

constexpr uint64 kRowsInitial = 16;

RdmaccHeldRows* held_by(DestReceiver* receiver) {
  return reinterpret_cast<RdmaccHeldRows*>(receiver);
}

void keep(RdmaccHeldRows* held, TupleTableSlot* slot) {
  CHECK(held->started && !held->passing);
  if (held->memory == nullptr) {
    held->memory = AllocSetContextCreate(held->parent, "rdmacc held rows", ALLOCSET_DEFAULT_SIZES);
    held->capacity = kRowsInitial;
    held->rows = static_cast<MinimalTuple*>(
        MemoryContextAlloc(held->memory, held->capacity * sizeof(MinimalTuple)));
  } else if (held->count == held->capacity) {
    held->capacity *= 2;
    held->rows = static_cast<MinimalTuple*>(
        repalloc_huge(held->rows, held->capacity * sizeof(MinimalTuple)));
  }
  const MemoryContext previous = MemoryContextSwitchTo(held->memory);
  MinimalTuple row = ExecCopySlotMinimalTuple(slot);
  MemoryContextSwitchTo(previous);
  CHECK(held->count < held->capacity);
  held->rows[held->count++] = row;
  held->bytes += row->t_len + sizeof(MinimalTuple);
}

void forget(RdmaccHeldRows* held) {
  if (held->memory != nullptr) MemoryContextDelete(held->memory);
  held->memory = nullptr;
  held->rows = nullptr;
  held->count = held->capacity = 0;
  held->bytes = 0;
}

/* Begins to pass rows on, with those that are held. False when the receiver wants no more. */
bool pass(RdmaccHeldRows* held) {
  CHECK(held->started && !held->passing && held->type != nullptr);
  held->passing = true;
  held->real->rStartup(held->real, held->operation, held->type);
  if (held->count == 0) return true;
  bool wanted = true;
  TupleTableSlot* slot = MakeSingleTupleTableSlot(held->type, &TTSOpsMinimalTuple);
  for (uint64 i = 0; i < held->count && wanted; i++) {
    ExecStoreMinimalTuple(held->rows[i], slot, false);
    wanted = held->real->receiveSlot(slot, held->real);
  }
  ExecDropSingleTupleTableSlot(slot);
  forget(held);
  return wanted;
}

bool receive(TupleTableSlot* slot, DestReceiver* receiver) {
  RdmaccHeldRows* held = held_by(receiver);
  if (!held->passing) {
    keep(held, slot);
    return held->bytes <= held->bytes_max || pass(held);
  }
  return held->real->receiveSlot(slot, held->real);
}

void start(DestReceiver* receiver, int operation, TupleDesc type) {
  RdmaccHeldRows* held = held_by(receiver);
  CHECK(!held->started && type != nullptr);
  held->started = true;
  held->operation = operation;
  /* An inner portal's goes with it, before the rows are passed on. */
  const MemoryContext previous = MemoryContextSwitchTo(held->parent);
  held->type = CreateTupleDescCopy(type);
  MemoryContextSwitchTo(previous);
}

/* The rows are still to be passed on. */
void shut_down(DestReceiver*) {}

/* Its memory is the caller's. */
void destroy(DestReceiver*) {}

}  // namespace

void rdmacc_hold_rows(RdmaccHeldRows* held, DestReceiver* real, Size bytes_max) {
  CHECK(real != nullptr && bytes_max > 0);
  memset(held, 0, sizeof(*held));
  held->receiver.receiveSlot = receive;
  held->receiver.rStartup = start;
  held->receiver.rShutdown = shut_down;
  held->receiver.rDestroy = destroy;
  held->receiver.mydest = real->mydest;
  held->real = real;
  held->parent = CurrentMemoryContext;
  held->bytes_max = bytes_max;
}

void rdmacc_drop_held_rows(RdmaccHeldRows* held) {
  CHECK(!held->passing); /* the client has had rows: no other attempt may follow */
  forget(held);
  held->started = false;
}

void rdmacc_release_held_rows(RdmaccHeldRows* held, MemoryContext context) {
  if (!held->started) return;
  const MemoryContext previous = MemoryContextSwitchTo(context);
  if (!held->passing) pass(held);
  held->real->rShutdown(held->real);
  MemoryContextSwitchTo(previous);
}
