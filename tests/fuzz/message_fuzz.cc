// Every request and reply of the engine, parsed from any bytes: the first byte says which.
#include "engine/log/in_doubt_list.h"
#include "engine/protocols/calvin/request.h"
#include "engine/storage/wire/audit_message.h"
#include "engine/storage/wire/storage_messages.h"
#include "engine/txn/remote/stage_message.h"
#include "tests/fuzz/heap_endpoint.h"
#include "tests/fuzz/reread.h"

namespace rdmacc {
namespace {

using Bytes = std::span<const std::byte>;
using Parser = void (*)(Bytes);

// What is copied out of a message goes to registered memory.
VerbArena& arena() {
  static HeapEndpoint endpoint;
  static RegisteredPool pool(endpoint);
  static VerbArena arena(pool);
  arena.reset();
  return arena;
}

// ---- Stages

void stage_header(Bytes bytes) { check_reread<StageHeader>(bytes, read_header, write_header); }
void access(Bytes bytes) { check_reread<Access>(bytes, read_access, write_access); }
void held(Bytes bytes) { check_reread<Held>(bytes, read_held, write_held); }
void key_request(Bytes bytes) { check_reread<KeyWork>(bytes, read_key_request, write_key_request); }
void group_request(Bytes bytes) {
  check_reread<ScanWork>(bytes, read_group_request, write_group_request);
}

struct AccessAndLock {
  Access access;
  EntryWork entries;
  LockWork work;
};

void lock_request(Bytes bytes) {
  check_reread<AccessAndLock>(
      bytes,
      [](MessageReader& in, AccessAndLock& lock) {
        return read_lock_request(in, lock.access, lock.entries, lock.work);
      },
      [](MessageWriter& out, const AccessAndLock& lock) { write_lock_request(out, lock.work); });
}

void key_result(Bytes bytes) {
  KeyWork work;
  MessageReader in(bytes);
  if (!read_key_result(in, arena(), work) || work.overflow != 0) return;
  const std::string copy(work.record);  // lies in memory of ours, whole
  CHECK(copy.size() <= bytes.size());
}

void group_result(Bytes bytes) {
  ScanWork work;
  MessageReader in(bytes);
  read_group_result(in, arena(), work);
}

void lock_result(Bytes bytes) {
  AccessAndLock lock;
  lock.work.access = &lock.access;
  MessageReader in(bytes);
  read_lock_result(in, lock.work);
}

void evicted(Bytes bytes) {
  std::vector<GlobalAddress> blocks;
  MessageReader in(bytes);
  if (!read_evicted(in, 1, blocks)) return;
  for (const GlobalAddress block : blocks) CHECK(block.node() == 1);
}

void status(Bytes bytes) {
  MessageReader in(bytes);
  static_cast<void>(read_status(in));
}

// ---- Storage

template <typename Message>
void storage_message(Bytes bytes) {
  Message first;
  if (!first.parse(bytes)) return;
  Rpc::Bytes once, twice;
  first.write(once);
  Message second;
  CHECK(second.parse(once));
  second.write(twice);
  CHECK(once == twice);
}

void storage_replies(Bytes bytes) {
  std::vector<AllocateReplyItem> items;
  parse_allocate_reply(bytes, bytes.size() / 36, &items);
  TableMeta meta;
  parse_table_meta(bytes, &meta);
  NodeStatistics statistics;
  parse_statistics(bytes, &statistics);
  LockedHeaders locked;
  parse_locked_headers(bytes, &locked);
  std::vector<ListedTable> tables;
  parse_tables(bytes, &tables);
  TableSize size;
  parse_table_size(bytes, &size);
  AuditReport report;
  report.parse(bytes);
}

void in_doubt(Bytes bytes) {
  check_reread<InDoubtList>(bytes, read_in_doubt_list, write_in_doubt_list);
}

// ---- The order

void ordered_request(Bytes bytes) {
  check_reread<OrderedRequest>(bytes, read_request, write_request);
}
void ordered_batch(Bytes bytes) {
  std::vector<OrderedRequest> requests;
  decode_batch(bytes, requests);
}
void ordered_verdict(Bytes bytes) {
  LocalVerdict verdict;
  read_verdict(bytes, verdict);
}
void ordered_outcome(Bytes bytes) {
  Status ended;
  OrderedOutcome outcome;
  read_outcome(bytes, ended, outcome);
}

constexpr Parser kParsers[] = {
    stage_header,
    access,
    held,
    key_request,
    group_request,
    lock_request,
    key_result,
    group_result,
    lock_result,
    evicted,
    status,
    storage_message<AllocateRequest>,
    storage_message<FreeMessage>,
    storage_message<ExtendRequest>,
    storage_message<TableRequest>,
    storage_replies,
    in_doubt,
    ordered_request,
    ordered_batch,
    ordered_verdict,
    ordered_outcome,
};

}  // namespace
}  // namespace rdmacc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rdmacc::kParsers[data[0] % std::size(rdmacc::kParsers)](
      std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}
