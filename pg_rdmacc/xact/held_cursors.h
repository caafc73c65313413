/* Cursors WITH HOLD, which stay where a function has moved them when its attempt is rolled back:
 * PL/pgSQL's FETCH, MOVE and CLOSE are no utility statements. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* The statement is about to be run. */
void rdmacc_note_cursor(const DeclareCursorStmt* statement);
/* The session has one, or had when the block or the statement alone began. */
bool rdmacc_holds_cursors(void);

/* A block begins, or a statement that is alone. */
void rdmacc_remember_cursors(void);
/* One has moved since, or is closed: another attempt would find it so. */
bool rdmacc_cursors_have_moved(void);
}
