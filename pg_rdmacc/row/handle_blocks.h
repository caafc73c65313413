/* The memory of row handles (handle.h): blocks of them, each with a number, the first half of its
 * handles' TIDs, which no other block has in the same transaction. */
#pragma once
#include "pg_rdmacc/row/handle.h"

#define RDMACC_HANDLES_PER_BLOCK RDMACC_NAMED_ROWS_MAX /* what offset numbers may reach */

struct RdmaccHandleBlock {
  BlockNumber number;
  MemoryContext memory; /* NULL: what it has so far needs none */
  RdmaccHandle* handles;
  const BridgeRow* named; /* rows in place of handles, of which the first is all others' form */
  uint32 count;
  uint32 capacity;
  ResourceOwner owner; /* NULL: the transaction */
  RdmaccHandleBlock* next_owned;
  RdmaccHandleBlock* previous_owned;
  bool kept;   /* beyond the stream's passing it */
  bool wanted; /* perhaps by a trigger, until the transaction ends */
};

/* An empty one, of the transaction. 54000 after 2^32 of them. */
RdmaccHandleBlock* rdmacc_handle_block_add(void);

/* NULL: there is none of this number, or no longer. */
RdmaccHandleBlock* rdmacc_handle_block_find(BlockNumber number);

/* A copy of the key's bytes that goes with the block. */
const char* rdmacc_handle_block_copy_key(RdmaccHandleBlock* block, const BridgeBytes* key);

/* Room for as many handles; those that are there, as far as there is room, stay as they are. */
void rdmacc_handle_block_resize(RdmaccHandleBlock* block, uint32 capacity);

void rdmacc_handle_block_remove(RdmaccHandleBlock* block);

/* The transaction has ended, and its memory goes. */
void rdmacc_handle_blocks_forget(void);
