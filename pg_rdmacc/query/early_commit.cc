#include "pg_rdmacc/query/early_commit.h"

#include "pg_rdmacc/bridge/engine_bridge.h"
#include "pg_rdmacc/index/unique_check.h"
#include "pg_rdmacc/query/retry.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "mb/pg_wchar.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
}

namespace {

bool firing;      /* deferred triggers, of */
uint32 firing_in; /* this transaction, which an error of theirs ends */

/* Rows that are sent after the commit, with interrupts held: so much goes out without a client that
 * reads along. */
constexpr Size kSendableBytesMax = 64 * 1024;

/* Its output is PostgreSQL's own and does not fail. */
bool is_plain_type(Oid type) {
  return type < FirstNormalObjectId && type != RECORDOID && type != RECORDARRAYOID;
}

/* Some types have no binary form: raised now rather than later. */
void look_up_output(Oid type, int format) {
  Oid function = InvalidOid;
  bool variable_length = false;
  if (format == 0) {
    getTypeOutputInfo(type, &function, &variable_length);
  } else {
    getTypeBinaryOutputInfo(type, &function, &variable_length);
  }
}

/* Sending the rows raises no error. */
bool can_be_sent(const RdmaccHeldRows* held) {
  if (!held->started) return true;
  if (held->passing || held->bytes > kSendableBytesMax) return false;
  if (pg_get_client_encoding() != GetDatabaseEncoding()) return false;
  CHECK(ActivePortal != nullptr && held->type != nullptr);
  const int16* formats = ActivePortal->formats;
  for (int i = 0; i < held->type->natts; i++) {
    const Oid type = TupleDescAttr(held->type, i)->atttypid;
    if (!is_plain_type(type)) return false;
    look_up_output(type, formats != nullptr ? formats[i] : 0);
  }
  return true;
}

}  // namespace

void rdmacc_fire_deferred_triggers(void) {
  CHECK(!rdmacc_fires_deferred_triggers());
  if (!OidIsValid(rdmacc_access_method())) return;
  firing = true;
  firing_in = rdmacc_transaction_number();
  AfterTriggerFireDeferred();
  firing = false;
}

bool rdmacc_fires_deferred_triggers(void) {
  return firing && firing_in == rdmacc_transaction_number();
}

void rdmacc_end_lone_statement(const RdmaccHeldRows* held) {
  rdmacc_check_doom();
  rdmacc_fire_deferred_triggers();
  if (!rdmacc_transaction_used()) return;
  rdmacc_check_unique(nullptr);
  /* COPY has read a Sync that came before its data: the client may have more to say. */
  const bool early = rdmacc_engine_may_commit_early() && rdmacc_is_whole_transaction() &&
                     (!bridge_txn_has_writes() || can_be_sent(held));
  if (early) return rdmacc_commit_engine_early();
  /* Its locks must not wait for a client either. */
  if (rdmacc_engine_may_prepare_early() && rdmacc_is_whole_transaction() && can_be_sent(held)) {
    return rdmacc_prepare_engine_early();
  }
  /* What has lost already is run again; from here on a conflict is the client's. Protocols that
   * find their time may put the transaction before what has changed. */
  if (!bridge_finds_its_time(bridge_txn_protocol())) rdmacc_check_reads_so_far();
}
