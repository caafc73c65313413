#pragma once
#include "engine/storage/wire/messages.h"
#include "engine/txn/transaction/ordered_request.h"

// Requests of the order as bytes: what coordinators submit, what batches hold and are replayed
// from, and what participants tell one another. All readers refuse what does not parse.

namespace rdmacc {

// A batch has room for any request, and a message for a batch.
constexpr uint64_t kOrderedBytesMax = kBatchBytes - 4096;
// What a request writes must fit the redo record, whatever the sizes of its rows.
constexpr uint32_t kOrderedWritesMax = 6000;
constexpr uint64_t kRedoOverheadMax = 160;  // of one write and its gap header, beside its row
static_assert(kOrderedBytesMax + kOrderedWritesMax * kRedoOverheadMax < kRedoBytes);
static_assert(kBatchBytes + 64 < kMaxMessageBytes);
constexpr uint32_t kOrderedKeysMax = 32 * 1024;

void write_request(MessageWriter& out, const OrderedRequest& request);
bool read_request(MessageReader& in, OrderedRequest& request);

using RequestBytes = std::vector<std::byte>;
void encode_batch(std::span<const RequestBytes* const> requests, std::vector<std::byte>& out);
bool decode_batch(std::span<const std::byte> bytes, std::vector<OrderedRequest>& requests);

// What a participant says to the executing nodes: its verdict and, of the request's reads that it
// stores, what they are. Of checked ones only absent keys whose gap header has another stamp by
// now; of a procedure's all, with their rows (`rows`).
struct LocalVerdict {
  Status status;
  std::vector<std::pair<uint32_t, OrderedRow>> reads;  // index in the request
};
void write_verdict(MessageWriter& out, const LocalVerdict& verdict, bool rows);
bool read_verdict(std::span<const std::byte> bytes, LocalVerdict& verdict);

void write_outcome(MessageWriter& out, const Status& status, const OrderedOutcome& outcome);
bool read_outcome(std::span<const std::byte> bytes, Status& status, OrderedOutcome& outcome);

}  // namespace rdmacc
