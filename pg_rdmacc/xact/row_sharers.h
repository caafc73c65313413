/* Which sessions of this server share which rows (FOR SHARE). A shared lock in the nodes' memory
 * names no holder: a session that wants such a row for itself finds here for whom to wait. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "storage/lock.h"

constexpr VirtualTransactionId RDMACC_NO_SESSION = {InvalidBackendId, InvalidLocalTransactionId};

/* At load time, under preload. */
void rdmacc_row_sharers_init(void);

/* This transaction shares the row until it, or its subtransaction, ends. Of very many the first are
 * noted. */
void rdmacc_note_shared_row(uint32 table, BridgeBytes key);

/* Another session's transaction that shares the row, or has shared it; RDMACC_NO_SESSION if none is
 * known. */
VirtualTransactionId rdmacc_sharer_of(uint32 table, BridgeBytes key);
/* Do other sessions share any rows? */
bool rdmacc_others_share_rows(void);

extern const RdmaccTransactionPart rdmacc_row_sharers_part;
}
