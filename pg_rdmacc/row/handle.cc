#include "pg_rdmacc/row/handle.h"

extern "C" {
#include "storage/off.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

struct RdmaccHandleBlock {
  BlockNumber number;   /* the hash table's key */
  MemoryContext memory; /* NULL: of a small block, which has what it needs */
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

namespace {

constexpr uint32 kHandlesPerBlock = RDMACC_NAMED_ROWS_MAX; /* what offset numbers may reach */
constexpr uint32 kHandlesInitial = 8;
constexpr int64 kBlocksInitial = 64;
constexpr Size kSmallKeyBytes = 256;

/* Most transactions name a row or a few, of a scan and of what it writes: for them no hash table
 * and no memory context is made. Each is the block of one stream at a time, whichever wants one
 * first. */
struct SmallBlock {
  RdmaccHandleBlock block;
  RdmaccHandle handles[kHandlesInitial];
  char keys[kSmallKeyBytes];
  Size key_bytes; /* of `keys` that are in use */
  bool in_use;
} small_blocks[2];

HTAB* blocks;              /* in TopTransactionContext, as are the blocks' contexts */
RdmaccHandleBlock* latest; /* of those that were asked for; NULL: it is gone */
BlockNumber next_block;
uint32 transaction_epoch = 1;
RdmaccHandleBlock* owned_blocks; /* those that have an owner */
RdmaccHandleStream kept_writes;
RdmaccHandleStream passing_writes;

void create(void) {
  HASHCTL control = {};
  control.keysize = sizeof(BlockNumber);
  control.entrysize = sizeof(RdmaccHandleBlock);
  control.hcxt = TopTransactionContext;
  blocks = hash_create("rdmacc row handles", kBlocksInitial, &control,
                       HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void own(RdmaccHandleBlock* block, ResourceOwner owner) {
  block->owner = owner;
  if (owner == nullptr) return;
  block->previous_owned = nullptr;
  block->next_owned = owned_blocks;
  if (owned_blocks != nullptr) owned_blocks->previous_owned = block;
  owned_blocks = block;
}

MemoryContext new_memory(void) {
  return AllocSetContextCreate(TopTransactionContext, "rdmacc row handle block",
                               ALLOCSET_SMALL_SIZES);
}

/* NULL: all are in use. */
RdmaccHandleBlock* take_small_block(BlockNumber number) {
  for (SmallBlock& small : small_blocks) {
    if (small.in_use) continue;
    small.in_use = true;
    small.key_bytes = 0;
    small.block.number = number;
    small.block.memory = nullptr;
    small.block.handles = small.handles;
    return &small.block;
  }
  return nullptr;
}

/* The one whose block it is, or NULL. */
SmallBlock* small_of(const RdmaccHandleBlock* block) {
  for (SmallBlock& small : small_blocks) {
    if (block == &small.block) return &small;
  }
  return nullptr;
}

RdmaccHandleBlock* make_block(BlockNumber number) {
  if (blocks == nullptr) create();
  MemoryContext memory = new_memory();
  bool found = false;
  auto* block = static_cast<RdmaccHandleBlock*>(hash_search(blocks, &number, HASH_ENTER, &found));
  CHECK(!found); /* numbers are not used again in a transaction */
  block->memory = memory;
  block->handles = static_cast<RdmaccHandle*>(
      MemoryContextAlloc(memory, kHandlesInitial * sizeof(RdmaccHandle)));
  return block;
}

RdmaccHandleBlock* add_block(const RdmaccHandleStream* stream) {
  if (next_block == MaxBlockNumber) {
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("too many rows of rdmacc tables in one transaction")));
  }
  const BlockNumber number = next_block++;
  RdmaccHandleBlock* block = take_small_block(number);
  if (block == nullptr) block = make_block(number);
  block->named = nullptr;
  block->capacity = kHandlesInitial;
  block->count = 0;
  block->kept = stream->keep;
  block->wanted = false;
  own(block, stream->owner);
  return block;
}

MemoryContext memory_of(RdmaccHandleBlock* block) {
  if (block->memory == nullptr) block->memory = new_memory();
  return block->memory;
}

/* A key's bytes go with their block. */
char* copy_key(RdmaccHandleBlock* block, const BridgeBytes* key) {
  char* copy = nullptr;
  SmallBlock* small = small_of(block);
  if (small != nullptr && key->size <= kSmallKeyBytes - small->key_bytes) {
    copy = small->keys + small->key_bytes;
    small->key_bytes += key->size;
  } else {
    copy = static_cast<char*>(MemoryContextAlloc(memory_of(block), Max(key->size, 1)));
  }
  memcpy(copy, key->data, key->size);
  return copy;
}

void resize(RdmaccHandleBlock* block, uint32 capacity) {
  CHECK(capacity > 0);
  const Size bytes = capacity * sizeof(RdmaccHandle);
  const SmallBlock* small = small_of(block);
  if (small == nullptr || block->handles != small->handles) {
    block->handles = static_cast<RdmaccHandle*>(repalloc(block->handles, bytes));
  } else if (capacity > kHandlesInitial) {
    block->handles = static_cast<RdmaccHandle*>(MemoryContextAlloc(memory_of(block), bytes));
    memcpy(block->handles, small->handles, sizeof(small->handles));
  }
  block->capacity = capacity;
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
  const BlockNumber number = block->number;
  disown(block);
  if (block->memory != nullptr) MemoryContextDelete(block->memory);
  SmallBlock* small = small_of(block);
  if (small != nullptr) {
    small->in_use = false;
  } else {
    hash_search(blocks, &number, HASH_REMOVE, nullptr);
  }
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
  if (stream->current == nullptr || stream->current->count == kHandlesPerBlock) {
    RdmaccHandleBlock* fresh = add_block(stream);
    release(stream->previous);
    stream->previous = stream->current;
    stream->current = fresh;
  }
  RdmaccHandleBlock* block = stream->current;
  if (block->count == block->capacity) resize(block, Min(block->capacity * 4, kHandlesPerBlock));
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
  handle->row.version = row->version;
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
  resize(block, Max(block->count, 1));
  block->named = nullptr;
  for (uint32 i = 0; i < block->count; i++) {
    RdmaccHandle* handle = &block->handles[i];
    *handle = all;
    make_handle(handle, &rows[i]);
    handle->key.data = copy_key(block, &rows[i].key);
  }
}

RdmaccHandleBlock* block_of(BlockNumber number) {
  for (SmallBlock& small : small_blocks) {
    if (small.in_use && small.block.number == number) return &small.block;
  }
  if (blocks == nullptr) return nullptr;
  return static_cast<RdmaccHandleBlock*>(hash_search(blocks, &number, HASH_FIND, nullptr));
}

/* The block with the relation's handle `tid`, or NULL. */
RdmaccHandleBlock* find_block(const ItemPointerData* tid, Relation relation) {
  if (!ItemPointerIsValid(tid)) return nullptr;
  const BlockNumber number = ItemPointerGetBlockNumber(tid);
  if (latest == nullptr || latest->number != number) latest = block_of(number);
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
  /* Their memory goes with the transaction's. */
  blocks = nullptr;
  for (SmallBlock& small : small_blocks) small.in_use = false;
  latest = nullptr;
  owned_blocks = nullptr;
  next_block = 0;
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
  char* key = copy_key(block, &handle->key);
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
  if (stream->epoch == transaction_epoch) release(stream->current);
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
