/* Transactions whose reads of rdmacc tables have to be those of the moment in which they commit.
 * A foreign key from an rdmacc table to another one needs that of whatever takes a referenced row
 * away: PostgreSQL's lock of that row is held from before the rdmacc table is searched for rows
 * that refer to it until the end. So whatever has come to refer to it is committed by then, and is
 * to be seen: also if the protocol has the transaction happen earlier, or if it has read the same
 * before. What defines something and takes the newest rows of a table for it has to fit to them. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* This transaction's are; of reads at one timestamp, what it reads after this. */
void rdmacc_need_current_reads(void);
bool rdmacc_needs_current_reads(void);

/* Before the engine's part ends: 40001 if what was read has changed. */
void rdmacc_check_current_reads(void);

/* 40001 if what was read so far has changed, or does not fit together: before the transaction tells
 * something that relies on it. */
void rdmacc_check_reads_so_far(void);

void rdmacc_forget_current_reads(void);
}
