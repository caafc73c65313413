#include "pg_rdmacc/row/handle.h"

#include "pg_rdmacc/row/handle_blocks.h"

extern "C" {
#include "storage/off.h"
}

namespace {

RdmaccHandleBlock* latest; /* of those that were asked for; NULL: it is gone */
uint32 transaction_epoch = 1;
RdmaccHandleBlock* owned_blocks; /* those that have an owner */
RdmaccHandleStream kept_writes;
RdmaccHandleStream passing_writes;

void own(RdmaccHandleBlock* block, ResourceOwner owner) {
  block->owner = owner;
  if (owner == nullptr) return;
  block->previous_owned = nullptr;
  block->next_owned = owned_blocks;
  if (owned_blocks != nullptr) owned_blocks->previous_owned = block;
  owned_blocks = block;
}

RdmaccHandleBlock* add_block(const RdmaccHandleStream* stream) {
  RdmaccHandleBlock* block = rdmacc_handle_block_add();
  block->kept = stream->keep;
  own(block, stream->owner);
  return block;
}

void disown(RdmaccHandleBlock* block) {
  if (block->owner == nullptr) return;
  if (block->next_owned != nullptr) block->next_owned->previous_owned = block->previous_owned;
  if (block->previous_owned != nullptr) {
    block->previous_owned->next_owned = block->next_owned;
  } else {
    owned_blocks = block->next_owned;
  }
  block->owner = nullptr;
}

void remove(RdmaccHandleBlock* block) {
  CHECK(!block->wanted);
  if (latest == block) latest = nullptr;
  disown(block);
  rdmacc_handle_block_remove(block);
}

void release(RdmaccHandleBlock* block) {
  if (block != nullptr && !block->kept && !block->wanted) remove(block);
}

/* A block with room for one more handle. */
RdmaccHandleBlock* block_with_room(RdmaccHandleStream* stream) {
  if (stream->epoch != transaction_epoch) {
    stream->current = stream->previous = nullptr;
    stream->epoch = transaction_epoch;
  }
  if (stream->current == nullptr || stream->current->count == RDMACC_HANDLES_PER_BLOCK) {
    RdmaccHandleBlock* fresh = add_block(stream);
    release(stream->previous);
    stream->previous = stream->current;
    stream->current = fresh;
  }
  RdmaccHandleBlock* block = stream->current;
  if (block->count == block->capacity) {
    rdmacc_handle_block_resize(block, Min(block->capacity * 4, RDMACC_HANDLES_PER_BLOCK));
  }
  return block;
}

void set_tid(ItemPointer tid, BlockNumber block, uint32 offset) {
  tid->ip_blkid.bi_hi = static_cast<uint16>(block >> 16);
  tid->ip_blkid.bi_lo = static_cast<uint16>(block & 0xffff);
  tid->ip_posid = static_cast<OffsetNumber>(offset);
}

/* A named row's handle, made when it is asked for: its key is the row's. */
void make_handle(RdmaccHandle* handle, const BridgeRow* row) {
  handle->key = row->key;
  handle->row = *row;
}

RdmaccHandle* handle_in(RdmaccHandleBlock* block, const ItemPointerData* tid) {
  const OffsetNumber at = ItemPointerGetOffsetNumber(tid) - 1;
  if (block->named == nullptr) return &block->handles[at];
  make_handle(block->handles, &block->named[at]);
  return block->handles;
}

/* Named rows become handles of their own, which outlive the rows. */
void keep_named(RdmaccHandleBlock* block) {
  if (block->named == nullptr) return;
  const BridgeRow* rows = block->named;
  const RdmaccHandle all = block->handles[0];
  rdmacc_handle_block_resize(block, Max(block->count, 1));
  block->named = nullptr;
  for (uint32 i = 0; i < block->count; i++) {
    RdmaccHandle* handle = &block->handles[i];
    *handle = all;
    make_handle(handle, &rows[i]);
    handle->key.data = rdmacc_handle_block_copy_key(block, &rows[i].key);
    handle->row = {.found = false, .key = {}, .row = {}, .version = rows[i].version, .node = 0};
  }
}

/* The block with the relation's handle `tid`, or NULL. */
RdmaccHandleBlock* find_block(const ItemPointerData* tid, Relation relation) {
  if (!ItemPointerIsValid(tid)) return nullptr;
  const BlockNumber number = ItemPointerGetBlockNumber(tid);
  if (latest == nullptr || latest->number != number) {
    latest = rdmacc_handle_block_find(number);
  }
  RdmaccHandleBlock* block = latest;
  if (block == nullptr || ItemPointerGetOffsetNumber(tid) > block->count) return nullptr;
  return handle_in(block, tid)->relation == RelationGetRelid(relation) ? block : nullptr;
}

/* The owner of scans' streams goes. If it has failed, so do their handles, but for those that an
 * AFTER trigger may want: an earlier write through a cursor outlives the cursor. */
void release(ResourceOwner owner, bool committed) {
  RdmaccHandleBlock* next = owned_blocks;
  while (next != nullptr) {
    RdmaccHandleBlock* block = next;
    next = block->next_owned;
    if (block->owner != owner) continue;
    if (block->named != nullptr) block->count = 0; /* the rows go with their scan */
    if (committed || block->wanted) {
      disown(block);
    } else {
      remove(block);
    }
  }
}

void forget(void) {
  rdmacc_handle_blocks_forget();
  latest = nullptr;
  owned_blocks = nullptr;
  transaction_epoch++;
}

}  // namespace

void rdmacc_handle_stream_begin(RdmaccHandleStream* stream, bool keep) {
  CHECK(CurrentResourceOwner != nullptr); /* whose end ends the handles */
  stream->current = stream->previous = nullptr;
  stream->owner = CurrentResourceOwner;
  stream->epoch = transaction_epoch;
  stream->keep = keep;
}

void rdmacc_handle_stream_end(RdmaccHandleStream* stream) {
  if (stream->epoch == transaction_epoch) {
    release(stream->previous);
    release(stream->current);
  }
  stream->current = stream->previous = nullptr;
}

void rdmacc_handle_assign(RdmaccHandleStream* stream, const RdmaccHandle* handle, ItemPointer tid) {
  CHECK(OidIsValid(handle->relation) && handle->key.data != nullptr && handle->key.size > 0);
  RdmaccHandleBlock* block = block_with_room(stream);
  const char* key = rdmacc_handle_block_copy_key(block, &handle->key);
  CHECK(block->count < block->capacity);
  RdmaccHandle* made = &block->handles[block->count++];
  *made = *handle;
  made->key.data = key;
  set_tid(tid, block->number, block->count);
}

void rdmacc_handle_name_rows(RdmaccHandleStream* stream, const RdmaccHandle* all,
                             const BridgeRow* rows, uint32 count) {
  CHECK(OidIsValid(all->relation) && count > 0 && count <= RDMACC_NAMED_ROWS_MAX);
  CHECK(!stream->keep);
  if (stream->epoch == transaction_epoch) {
    release(stream->previous);
    release(stream->current);
  }
  stream->epoch = transaction_epoch;
  stream->current = stream->previous = nullptr;
  stream->current = add_block(stream);
  stream->current->handles[0] = *all;
  stream->current->named = rows;
  stream->current->count = count;
}

void rdmacc_handle_of_named(const RdmaccHandleStream* stream, uint32 row, ItemPointer tid) {
  CHECK(stream->current != nullptr && stream->epoch == transaction_epoch);
  CHECK(row < RDMACC_NAMED_ROWS_MAX);
  set_tid(tid, stream->current->number, row + 1);
}

const RdmaccHandle* rdmacc_handle_find(const ItemPointerData* tid, Relation relation) {
  RdmaccHandleBlock* block = find_block(tid, relation);
  return block == nullptr ? nullptr : handle_in(block, tid);
}

const RdmaccHandle* rdmacc_handle_get(const ItemPointerData* tid, Relation relation) {
  RdmaccHandleBlock* block = find_block(tid, relation);
  if (block == nullptr) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("row identifiers of rdmacc tables are valid only where they were read"),
                    errhint("Use the primary key to find the row again.")));
  }
  if (relation->trigdesc != nullptr) {
    keep_named(block);
    block->wanted = true;
  }
  return handle_in(block, tid);
}

RdmaccHandleStream* rdmacc_handle_write_stream(bool keep) {
  RdmaccHandleStream* stream = keep ? &kept_writes : &passing_writes;
  stream->keep = keep;
  return stream;
}

const RdmaccTransactionPart rdmacc_handles_part = {.owner_released = release, .forget = forget};
