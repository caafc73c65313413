#include "pg_rdmacc/query/kept_owner.h"

#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
}

namespace {

constexpr int kPairsMax = 16; /* statements that lose within one savepoint, and one */
constexpr int kTriesMax = 64; /* chunks that were freed after the one that is wanted */

struct Pair {
  ResourceOwner owner;
  MemoryContext context;
};

/* In the place of another pair. */
struct StandIn {
  Pair pair;
  uint32 transaction; /* of which it is, by rdmacc_transaction_number() */
  SubTransactionId subtransaction;
};

StandIn stand_ins[kPairsMax]; /* of statements before */
int stand_in_count;
Pair wanted[kPairsMax]; /* addresses */
int wanted_count;
int owners_made;
int contexts_made;
bool noted;
bool too_many;

bool is_current(const StandIn* each) {
  return each->transaction == rdmacc_transaction_number() &&
         each->subtransaction == GetCurrentSubTransactionId();
}

void want(Pair pair) {
  if (wanted_count == kPairsMax) {
    too_many = true;
    return;
  }
  wanted[wanted_count++] = pair;
}

/* Memory that was freed last is given out first. */
bool make_owner_at(ResourceOwner address) {
  ResourceOwner others[kTriesMax];
  int count = 0;
  bool made = false;
  while (!made && count < kTriesMax) {
    ResourceOwner owner = ResourceOwnerCreate(nullptr, "rdmacc replay");
    made = owner == address;
    if (!made) others[count++] = owner;
  }
  while (count > 0) ResourceOwnerDelete(others[--count]);
  return made;
}

bool make_context_at(MemoryContext address) {
  MemoryContext others[kTriesMax];
  int count = 0;
  bool made = false;
  while (!made && count < kTriesMax) {
    MemoryContext context =
        AllocSetContextCreate(TopMemoryContext, "rdmacc replay", ALLOCSET_DEFAULT_SIZES);
    made = context == address;
    if (!made) others[count++] = context;
  }
  while (count > 0) MemoryContextDelete(others[--count]);
  return made;
}

}  // namespace

void rdmacc_note_owners(void) {
  CHECK(owners_made == 0 && contexts_made == 0);
  if (noted) return;
  noted = true;
  if (!IsSubTransaction()) return;
  want({CurTransactionResourceOwner, CurTransactionContext});
  /* One of these, if a statement of this savepoint has been run again before. */
  for (int i = 0; i < stand_in_count; i++) {
    if (is_current(&stand_ins[i])) want(stand_ins[i].pair);
  }
}

bool rdmacc_make_owners(void) {
  CHECK(noted && owners_made == 0 && contexts_made == 0);
  stand_in_count = 0;
  while (owners_made < wanted_count && make_owner_at(wanted[owners_made].owner)) owners_made++;
  while (contexts_made < wanted_count && make_context_at(wanted[contexts_made].context)) {
    contexts_made++;
  }
  return owners_made == wanted_count && contexts_made == wanted_count && !too_many;
}

void rdmacc_hand_over_owners(void) {
  CHECK(owners_made == wanted_count && contexts_made == wanted_count && stand_in_count == 0);
  for (int i = 0; i < wanted_count; i++) {
    ResourceOwnerNewParent(wanted[i].owner, CurTransactionResourceOwner);
    MemoryContextSetParent(wanted[i].context, CurTransactionContext);
    stand_ins[stand_in_count++] = {wanted[i], rdmacc_transaction_number(),
                                   GetCurrentSubTransactionId()};
  }
  owners_made = contexts_made = 0;
}

void rdmacc_drop_owners(void) {
  while (owners_made > 0) ResourceOwnerDelete(wanted[--owners_made].owner);
  while (contexts_made > 0) MemoryContextDelete(wanted[--contexts_made].context);
}

void rdmacc_forget_owners(void) {
  CHECK(owners_made == 0 && contexts_made == 0);
  wanted_count = 0;
  noted = too_many = false;
}
