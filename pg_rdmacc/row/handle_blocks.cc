#include "pg_rdmacc/row/handle_blocks.h"

extern "C" {
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

namespace {

constexpr uint32 kHandlesInitial = 8;
constexpr int64 kBlocksInitial = 64;
constexpr Size kSmallKeyBytes = 256;
constexpr int kSmallBlocks = 8; /* as many as a block of a few statements wants */

/* Most transactions name a row or a few, of a scan and of what it writes: for them no hash table
 * and no memory context is made. Each is the block of one stream at a time, whichever wants one
 * first. */
struct SmallBlock {
  RdmaccHandleBlock block;
  RdmaccHandle handles[kHandlesInitial];
  char keys[kSmallKeyBytes];
  Size key_bytes; /* of `keys` that are in use */
  bool in_use;
} small_blocks[kSmallBlocks];

HTAB* blocks; /* all others, by number; in TopTransactionContext, as are the contexts of all */
BlockNumber next_number;

/* The one whose block it is, or NULL. */
SmallBlock* small_of(const RdmaccHandleBlock* block) {
  for (SmallBlock& small : small_blocks) {
    if (block == &small.block) return &small;
  }
  return nullptr;
}

MemoryContext memory_of(RdmaccHandleBlock* block) {
  if (block->memory == nullptr) {
    block->memory = AllocSetContextCreate(TopTransactionContext, "rdmacc row handle block",
                                          ALLOCSET_SMALL_SIZES);
  }
  return block->memory;
}

/* NULL: all are in use. */
RdmaccHandleBlock* take_small_block(void) {
  for (SmallBlock& small : small_blocks) {
    if (small.in_use) continue;
    small.in_use = true;
    small.key_bytes = 0;
    small.block.memory = nullptr;
    small.block.handles = small.handles;
    return &small.block;
  }
  return nullptr;
}

void create_table(void) {
  HASHCTL control = {};
  control.keysize = sizeof(BlockNumber);
  control.entrysize = sizeof(RdmaccHandleBlock);
  control.hcxt = TopTransactionContext;
  blocks = hash_create("rdmacc row handles", kBlocksInitial, &control,
                       HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

RdmaccHandleBlock* make_block(BlockNumber number) {
  if (blocks == nullptr) create_table();
  bool found = false;
  auto* block = static_cast<RdmaccHandleBlock*>(hash_search(blocks, &number, HASH_ENTER, &found));
  CHECK(!found); /* numbers are not used again in a transaction */
  block->memory = nullptr;
  block->handles = static_cast<RdmaccHandle*>(
      MemoryContextAlloc(memory_of(block), kHandlesInitial * sizeof(RdmaccHandle)));
  return block;
}

}  // namespace

RdmaccHandleBlock* rdmacc_handle_block_add(void) {
  if (next_number == MaxBlockNumber) {
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("too many rows of rdmacc tables in one transaction")));
  }
  const BlockNumber number = next_number++;
  RdmaccHandleBlock* block = take_small_block();
  if (block == nullptr) block = make_block(number);
  block->number = number;
  block->named = nullptr;
  block->count = 0;
  block->capacity = kHandlesInitial;
  block->owner = nullptr;
  block->kept = block->wanted = false;
  return block;
}

RdmaccHandleBlock* rdmacc_handle_block_find(BlockNumber number) {
  for (SmallBlock& small : small_blocks) {
    if (small.in_use && small.block.number == number) return &small.block;
  }
  if (blocks == nullptr) return nullptr;
  return static_cast<RdmaccHandleBlock*>(hash_search(blocks, &number, HASH_FIND, nullptr));
}

const char* rdmacc_handle_block_copy_key(RdmaccHandleBlock* block, const BridgeBytes* key) {
  CHECK(key->data != nullptr);
  SmallBlock* small = small_of(block);
  char* copy = nullptr;
  if (small != nullptr && key->size <= kSmallKeyBytes - small->key_bytes) {
    copy = small->keys + small->key_bytes;
    small->key_bytes += key->size;
  } else {
    copy = static_cast<char*>(MemoryContextAlloc(memory_of(block), Max(key->size, 1)));
  }
  memcpy(copy, key->data, key->size);
  return copy;
}

void rdmacc_handle_block_resize(RdmaccHandleBlock* block, uint32 capacity) {
  CHECK(capacity > 0 && capacity <= RDMACC_HANDLES_PER_BLOCK);
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

void rdmacc_handle_block_remove(RdmaccHandleBlock* block) {
  const BlockNumber number = block->number;
  if (block->memory != nullptr) MemoryContextDelete(block->memory);
  SmallBlock* small = small_of(block);
  if (small != nullptr) {
    small->in_use = false;
  } else {
    hash_search(blocks, &number, HASH_REMOVE, nullptr);
  }
}

void rdmacc_handle_blocks_forget(void) {
  blocks = nullptr;
  for (SmallBlock& small : small_blocks) small.in_use = false;
  next_number = 0;
}
