#pragma once
#include "engine/storage/wire/messages.h"
#include "engine/txn/stages/find.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/scan_work.h"

// Arguments and results of stages as bytes, for the rpc primitive. Both ends check every length
// and address: a reader that is not ok() or a `false` means that the peer's bytes are refused.
// Results carry the locks that were taken also when the stage failed, so that the coordinator
// knows exactly what to release.

namespace rdmacc {

// What the owner is asked to do with the items of a request.
enum class StageWork : uint8_t {
  kFind,         // Read, or Lock of what is read: KeyWork
  kScan,         // the same for groups: ScanWork
  kLock,         // LockWork
  kValidate,     // Access
  kLog,          // LogPlacement
  kCommit,       // one encoded LogRecord
  kRelease,      // Held
  kEnd,          // one LogPlacement, and Held: Log, then Commit of what it logs, then Release
  kReleaseCtts,  // no items: every lock of this node that still holds the ctts
  kCount
};

// Every request begins with this.
struct StageHeader {
  StageWork work = StageWork::kFind;
  Protocol protocol = Protocol::kOcc;
  LockMode lock_mode = LockMode::kExclusive;
  TxnStamps stamps;
  uint32_t count = 0;
};
void write_header(MessageWriter& out, const StageHeader& header);
bool read_header(MessageReader& in, StageHeader& header);
// The count in a request that begins with a header, once it is known.
void set_count(std::span<std::byte> request, uint32_t count);

void write_status(MessageWriter& out, const Status& status);
Status read_status(MessageReader& in);

void write_access(MessageWriter& out, const Access& access);
bool read_access(MessageReader& in, Access& access);

void write_key_request(MessageWriter& out, const KeyWork& work);
bool read_key_request(MessageReader& in, KeyWork& work);
// Without the bytes of overflow blocks: the coordinator reads those (they never change).
void write_key_result(MessageWriter& out, const KeyWork& work);
// Copies the record into `arena`.
bool read_key_result(MessageReader& in, VerbArena& arena, KeyWork& work);

void write_held(MessageWriter& out, const Held& held);
bool read_held(MessageReader& in, Held& held);
// What an owner has done of kEnd, once it has logged.
struct EndResult {
  bool installed = false;
  bool released = false;
};
void write_end_result(MessageWriter& out, const EndResult& result);
bool read_end_result(MessageReader& in, EndResult& result);
void write_evicted(MessageWriter& out, std::span<const GlobalAddress> evicted);
bool read_evicted(MessageReader& in, NodeId node, std::vector<GlobalAddress>& evicted);

void write_lock_request(MessageWriter& out, const LockWork& work);
bool read_lock_request(MessageReader& in, Access& access, EntryWork& entries, LockWork& work);
void write_lock_result(MessageWriter& out, const LockWork& work);
bool read_lock_result(MessageReader& in, LockWork& work);

void write_group_request(MessageWriter& out, const ScanWork& work);
bool read_group_request(MessageReader& in, ScanWork& work);
void write_group_result(MessageWriter& out, const ScanWork& work);
bool read_group_result(MessageReader& in, VerbArena& arena, ScanWork& work);

}  // namespace rdmacc
