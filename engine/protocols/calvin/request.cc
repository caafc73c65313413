#include "engine/protocols/calvin/request.h"

#include "engine/txn/remote/stage_message.h"

namespace rdmacc {
namespace {

bool read_key(MessageReader& in, std::string& key) {
  key = in.bytes();
  return in.ok() && key.size() <= kKeyBytesMax;
}

void write_writes(MessageWriter& out, const std::vector<OrderedWrite>& writes) {
  CHECK(writes.size() <= kOrderedWritesMax);
  out.u32(static_cast<uint32_t>(writes.size()));
  for (const OrderedWrite& write : writes) {
    out.u32(write.table);
    out.bytes(write.key);
    out.u8(write.deleted ? 1 : 0);
    out.bytes(write.row);
  }
}

bool read_writes(MessageReader& in, std::vector<OrderedWrite>& writes) {
  const uint32_t count = in.u32();
  if (count > kOrderedWritesMax) return false;
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    OrderedWrite write;
    write.table = in.u32();
    if (!read_key(in, write.key)) return false;
    write.deleted = in.u8() != 0;
    write.row = in.bytes();
    if (!in.ok() || write.row.size() > kRowBytesMax) return false;
    writes.push_back(std::move(write));
  }
  return in.ok();
}

void write_row(MessageWriter& out, const OrderedRow& row, bool with_bytes) {
  out.u8(row.found ? 1 : 0);
  out.u64(row.version);
  out.bytes(with_bytes ? std::string_view(row.row) : std::string_view());
}

bool read_row(MessageReader& in, OrderedRow& row) {
  row.found = in.u8() != 0;
  row.version = in.u64();
  row.row = in.bytes();
  return in.ok();
}

}  // namespace

void write_request(MessageWriter& out, const OrderedRequest& request) {
  CHECK(request.reads.size() <= kOrderedKeysMax && request.scanned.size() <= kOrderedKeysMax);
  out.u64(request.ctts);
  out.u16(request.plan.code());
  out.u32(request.procedure);
  out.bytes(request.inputs);
  out.u32(static_cast<uint32_t>(request.reads.size()));
  for (const OrderedRead& read : request.reads) {
    out.u32(read.table);
    out.bytes(read.key);
    out.u8(read.found ? 1 : 0);
    out.u64(read.version);
  }
  out.u32(static_cast<uint32_t>(request.scanned.size()));
  for (const OrderedGroup& group : request.scanned) {
    write_access(out, group.gap);
    out.u64(group.digest);
  }
  write_writes(out, request.writes);
  out.u8(request.derived_inserts ? 1 : 0);
}

bool read_request(MessageReader& in, OrderedRequest& request) {
  request.ctts = in.u64();
  const uint16_t code = in.u16();
  if (code > kStageCodeMax) return false;
  request.plan = StagePlan(code);
  request.procedure = in.u32();
  request.inputs = in.bytes();
  const uint32_t reads = in.u32();
  if (reads > kOrderedKeysMax) return false;
  for (uint32_t i = 0; i < reads && in.ok(); i++) {
    OrderedRead read;
    read.table = in.u32();
    if (!read_key(in, read.key)) return false;
    read.found = in.u8() != 0;
    read.version = in.u64();
    request.reads.push_back(std::move(read));
  }
  const uint32_t scanned = in.u32();
  if (scanned > kOrderedKeysMax) return false;
  for (uint32_t i = 0; i < scanned && in.ok(); i++) {
    OrderedGroup group;
    if (!read_access(in, group.gap)) return false;
    group.digest = in.u64();
    request.scanned.push_back(group);
  }
  if (!read_writes(in, request.writes)) return false;
  request.derived_inserts = in.u8() != 0;
  return in.ok();
}

void encode_batch(std::span<const RequestBytes* const> requests, std::vector<std::byte>& out) {
  CHECK(requests.size() <= kBatchRequestsMax);
  MessageWriter writer(out);
  writer.u32(static_cast<uint32_t>(requests.size()));
  for (const RequestBytes* request : requests) writer.raw(request->data(), request->size());
}

bool decode_batch(std::span<const std::byte> bytes, std::vector<OrderedRequest>& requests) {
  MessageReader in(bytes);
  const uint32_t count = in.u32();
  if (count > kBatchRequestsMax) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!read_request(in, requests.emplace_back())) return false;
  }
  return in.at_end();
}

void write_verdict(MessageWriter& out, const LocalVerdict& verdict, bool rows) {
  CHECK(verdict.reads.size() <= kOrderedKeysMax);
  write_status(out, verdict.status);
  out.u32(static_cast<uint32_t>(verdict.reads.size()));
  for (const auto& [index, row] : verdict.reads) {
    out.u32(index);
    write_row(out, row, rows);
  }
}

bool read_verdict(std::span<const std::byte> bytes, LocalVerdict& verdict) {
  MessageReader in(bytes);
  verdict.status = read_status(in);
  const uint32_t reads = in.u32();
  if (!in.ok() || reads > kOrderedKeysMax) return false;
  for (uint32_t i = 0; i < reads && in.ok(); i++) {
    auto& [index, row] = verdict.reads.emplace_back();
    index = in.u32();
    if (!read_row(in, row)) return false;
  }
  return in.at_end();
}

void write_outcome(MessageWriter& out, const Status& status, const OrderedOutcome& outcome) {
  CHECK(outcome.reads.size() <= kOrderedKeysMax);
  write_status(out, status);
  out.u64(outcome.stamp);
  out.u32(static_cast<uint32_t>(outcome.reads.size()));
  for (const OrderedRow& row : outcome.reads) write_row(out, row, /*with_bytes=*/true);
  write_writes(out, outcome.writes);
  out.bytes(outcome.output);
  out.u8(outcome.rolled_back ? 1 : 0);
}

bool read_outcome(std::span<const std::byte> bytes, Status& status, OrderedOutcome& outcome) {
  MessageReader in(bytes);
  status = read_status(in);
  outcome.stamp = in.u64();
  const uint32_t reads = in.u32();
  if (!in.ok() || reads > kOrderedKeysMax) return false;
  outcome.reads.clear();
  for (uint32_t i = 0; i < reads && in.ok(); i++) {
    if (!read_row(in, outcome.reads.emplace_back())) return false;
  }
  outcome.writes.clear();
  if (!read_writes(in, outcome.writes)) return false;
  outcome.output = in.bytes();
  outcome.rolled_back = in.u8() != 0;
  return in.at_end();
}

}  // namespace rdmacc
