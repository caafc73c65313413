#pragma once
#include "engine/storage/layout/hash_index.h"
#include "engine/storage/layout/tuple.h"
#include "rdma/fabric/fabric.h"

// What is where in a node's region. Every part has a fixed place computed from the topology, so
// that a coordinator finds it without asking. Parts differ in which processes may write them, so
// that a fabric can register them apart: the superblock and the directory are the owner's; the
// control area (node 0's alone is used) has one line per worker that this worker writes, and slots
// of its transactions, which any may write; a log ring is its coordinator's; slots and buckets are
// written by the holder of their lock.
//
//   superblock   4 KB     magic, version, this node's id, region generation
//   control      64 B gate + (64 + 64 x 32) B per worker, to 4 KB       (engine/cluster)
//   directory    kDirectoryEntries x 128 B
//   log rings    workers_max x (64 B head + kLogRingBytes)              (engine/log)
//   order area   batches and forwarded values of the deterministic order, written by the node
//                that sends them                                        (engine/protocols/calvin)
//   page table   8 B per 256 KB page: size class and kind of the page   (arena)
//   pages        up to the region's end

namespace rdmacc {

constexpr uint64_t kRegionMagic = 0x31'43'43'41'4D'44'52'70ull;  // "pRDMACC1"
constexpr uint32_t kRegionVersion = 12;
constexpr uint32_t kDirectoryEntries = 16 * 1024;
constexpr uint64_t kLogRingBytes = 256 * 1024;
constexpr uint64_t kPageBytes = 256 * 1024;

// Stamps and lock words of the deterministic order have this in place of a worker's id. It is
// not a worker's: what is found locked with it after a restart of its node has no other owner.
constexpr WorkerId kOrderWorker = kNoWorker - 1;

// The order area of a node:
//
//   control      own progress, last stamp, then the progress of every node      rounded to 4 KB
//   redo         kRedoBytes
//   batches      nodes x 2 (even and odd epochs) x kBatchBytes
//   forwards     nodes (senders) x (nodes x kBatchRequestsMax) x kForwardBytes
constexpr uint64_t kBatchBytes = 1024 * 1024;
constexpr uint32_t kBatchRequestsMax = 32;  // of one node in one epoch
constexpr uint64_t kForwardBytes = 16 * 1024;
constexpr uint64_t kRedoBytes = 2 * 1024 * 1024;

struct Superblock {
  uint64_t magic;  // written last: the region is formatted
  uint32_t version;
  uint32_t node;
  uint64_t region_bytes;
  uint64_t generation;  // random; differs for every formatted region
  uint64_t pages_used;  // pages handed out so far; rises by the owner's 8-byte stores
  // Rises when pages of slots or groups are about to become something else: what a thread of this
  // node has cached of addresses here goes then, as at coordinators by the era (control_area.h).
  uint64_t address_era;
  uint64_t incarnations_used;  // the largest of a header whose page has become something else
  uint64_t contents;           // StorageService::Contents
  // 1 from when on a slot was in a page of larger slots, since there was no other memory: where the
  // slots of a table are is not told by their size alone then.
  uint64_t slots_in_larger;
};

// State of a directory entry.
enum class TableState : uint32_t { kFree = 0, kLive = 1, kDropped = 2 };

// A table as its nodes know it. Slot `id % kDirectoryEntries` of every node's directory; one
// 128-byte READ gets it. The owner node writes everything else before `state`.
struct DirectoryEntry {
  uint32_t id;
  TableState state;
  uint64_t system_id;  // identity given by the front end: (system id, database, relfilenode);
  uint32_t database;   // native tables use system id 0 and numbers of their own
  uint32_t relfilenode;
  uint32_t record_size;  // record bytes kept inline, multiple of 8
  uint32_t history;      // old versions kept per slot
  uint64_t root;         // IndexRoot of this node's part
  uint64_t rows;         // approximate: the owner's count of slots handed out and not freed
  uint64_t created_us;   // this node's clock when it was made
  uint64_t reserved[9];
};
static_assert(sizeof(DirectoryEntry) == 128);

struct RegionLayout {
  explicit RegionLayout(const Topology& topology);

  uint64_t control;  // offset of the gate line
  uint64_t directory;
  uint64_t log_rings;
  uint64_t order;
  uint64_t page_table;
  uint64_t pages;       // first page, kPageBytes-aligned
  uint64_t page_count;  // whole pages that fit; 0 if the region is too small
  uint64_t region_bytes;
  NodeId nodes;
  WorkerId workers_max;

  uint64_t worker_line(WorkerId worker) const { return control + 64 + worker * 64ull; }
  // The slot of a transaction (control_area.h), and of a worker's all.
  uint64_t txn_slot(uint64_t ctts) const;
  uint64_t txn_slots(WorkerId worker) const;
  uint64_t directory_entry(TableId id) const {
    return directory + (id % kDirectoryEntries) * sizeof(DirectoryEntry);
  }
  uint64_t log_ring(WorkerId worker) const { return log_rings + worker * (64 + kLogRingBytes); }
  uint64_t order_progress(NodeId of) const { return order + 64 + of * 8ull; }
  uint64_t order_redo() const { return order + round_up(64 + nodes * 8ull, 4096); }
  uint64_t order_batch(NodeId from, uint64_t epoch) const {
    return order_redo() + kRedoBytes + (from * 2ull + epoch % 2) * kBatchBytes;
  }
  uint64_t order_forward(NodeId from, uint64_t index) const {
    return order_batch(nodes, 0) + (from * orders_per_epoch() + index) * kForwardBytes;
  }
  uint64_t orders_per_epoch() const { return nodes * uint64_t{kBatchRequestsMax}; }
  uint64_t order_end() const { return order_forward(nodes, 0); }
  // Can a header with the largest inline record stand there? Entries and addresses that others
  // wrote are checked with this before a verb goes there.
  bool holds_header(uint64_t offset) const {
    return offset % 64 == 0 && offset >= pages &&
           offset <= region_bytes - sizeof(Header) - kRecordInlineMax;
  }
  // The same for a bucket that another one leads to; 0 leads to none.
  bool holds_bucket(uint64_t offset) const {
    return offset % sizeof(Bucket) == 0 && offset >= pages &&
           offset <= region_bytes - sizeof(Bucket);
  }
  uint64_t page(uint64_t index) const { return pages + index * kPageBytes; }
  uint64_t page_word(uint64_t index) const { return page_table + index * sizeof(uint64_t); }
};

// Smallest region that a topology can work with.
uint64_t region_bytes_min(const Topology& topology);

}  // namespace rdmacc
