#include "pg_rdmacc/query/kept_owner.h"

#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "utils/resowner.h"
}

namespace {

constexpr int kOwnersMax = 4;
constexpr int kTriesMax = 64; /* chunks that were freed after the owner's */

/* An owner in the place of another one. */
struct StandIn {
  ResourceOwner owner;
  uint32 transaction; /* of which it is, by rdmacc_transaction_number() */
  SubTransactionId subtransaction;
};

StandIn stand_ins[kOwnersMax]; /* of the statements so far, those that have ended with their
                                  subtransaction included */
int stand_in_count;
ResourceOwner wanted[kOwnersMax]; /* addresses */
int wanted_count;
int made_count; /* of the wanted ones */

bool is_current(const StandIn* each) {
  return each->transaction == rdmacc_transaction_number() &&
         each->subtransaction == GetCurrentSubTransactionId();
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

}  // namespace

void rdmacc_note_owners(void) {
  wanted_count = made_count = 0;
  if (!IsSubTransaction()) return;
  wanted[wanted_count++] = CurTransactionResourceOwner;
  /* One of these, if the block has been run again within this savepoint before. */
  for (int i = 0; i < stand_in_count; i++) {
    if (is_current(&stand_ins[i]) && wanted_count < kOwnersMax) {
      wanted[wanted_count++] = stand_ins[i].owner;
    }
  }
  CHECK(wanted_count > 0 && wanted_count <= kOwnersMax);
}

bool rdmacc_make_owners(void) {
  CHECK(made_count == 0);
  stand_in_count = 0;
  while (made_count < wanted_count && make_owner_at(wanted[made_count])) made_count++;
  return made_count == wanted_count;
}

void rdmacc_hand_over_owners(void) {
  CHECK(made_count == wanted_count && stand_in_count == 0);
  for (int i = 0; i < made_count; i++) {
    ResourceOwnerNewParent(wanted[i], CurTransactionResourceOwner);
    stand_ins[stand_in_count++] = {wanted[i], rdmacc_transaction_number(),
                                   GetCurrentSubTransactionId()};
  }
  made_count = wanted_count = 0;
}

void rdmacc_drop_owners(void) {
  while (made_count > 0) ResourceOwnerDelete(wanted[--made_count]);
  wanted_count = 0;
}
