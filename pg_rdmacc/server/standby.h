/* A hot standby, whose nodes follow its WAL: sessions read there, each transaction at one point,
 * which is no older than what PostgreSQL itself shows the session when it begins
 * (docs/durability.md). */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Of those that read there, and of the process that applies. */
#define RDMACC_STANDBY_PROTOCOL "mvcc"

/* PostgreSQL recovers, and its sessions can but read. Others may see it promoted at any moment. */
bool rdmacc_on_standby(void);
/* The nodes have followed in this life of the server: transactions that began then may be open. */
bool rdmacc_has_followed(void);

/* Before an engine transaction begins, of an attached session. `standby`: what rdmacc_on_standby()
 * has said. Waits on a standby until the nodes have what PostgreSQL has replayed, and otherwise, as
 * after a promotion, until they have all. Raises 57P03 after ten seconds, or when the rows could
 * not be recovered. Costs nothing elsewhere. */
void rdmacc_await_applied(bool standby);
/* The same where it was entered and has not begun yet, if the nodes were given their rows back
 * since. */
void rdmacc_await_applied_again(void);
/* It has not waited for what a checkpoint, which is being written, holds up. */
bool rdmacc_is_behind(void);
/* On a standby, for a table which the catalog knows: waits for what a checkpoint holds up, too. */
void rdmacc_await_tables(void);
}
