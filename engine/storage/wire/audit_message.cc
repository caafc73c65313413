#include "engine/storage/wire/audit_message.h"

#include "rdma/base/check.h"

namespace rdmacc {

const char* fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRoot:
      return "root array";
    case FaultKind::kGroup:
      return "unreachable group";
    case FaultKind::kChain:
      return "broken chain";
    case FaultKind::kWrongNode:
      return "wrong node";
    case FaultKind::kWrongGroup:
      return "wrong group";
    case FaultKind::kWrongBucket:
      return "wrong bucket";
    case FaultKind::kWrongTag:
      return "wrong tag";
    case FaultKind::kTwice:
      return "named twice";
    case FaultKind::kNoRecord:
      return "no record";
    case FaultKind::kWrongKey:
      return "wrong key";
    case FaultKind::kLostRow:
      return "lost row";
    case FaultKind::kLeakedSlot:
      return "leaked slot";
    case FaultKind::kLeakedBlock:
      return "leaked block";
    case FaultKind::kLeakedUnit:
      return "leaked unit";
    case FaultKind::kOwnLock:
      return "lock";
  }
  CHECK(false);
}

void AuditReport::add(Fault fault) {
  ++faults_seen;
  const uint64_t key_bytes = key_bytes_ + fault.key.size();
  if (faults.size() == kFaultsPerAudit || key_bytes > kFaultKeyBytesPerAudit) return;
  key_bytes_ = key_bytes;
  faults.push_back(std::move(fault));
}

void AuditReport::write(std::vector<std::byte>& out) const {
  CHECK(faults.size() <= kFaultsPerAudit);
  MessageWriter writer(out);
  for (const uint64_t number : {epoch, rows, entries, groups, slots, faults_seen}) {
    writer.u64(number);
  }
  writer.u32(static_cast<uint32_t>(faults.size()));
  for (const Fault& fault : faults) {
    writer.u8(static_cast<uint8_t>(fault.kind));
    writer.u8(fault.settled ? 1 : 0);
    writer.u32(fault.table);
    writer.u64(fault.offset);
    writer.u64(fault.identity);
    writer.u64(fault.detail);
    writer.bytes(fault.key);
  }
}

bool AuditReport::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  for (uint64_t* number : {&epoch, &rows, &entries, &groups, &slots, &faults_seen}) {
    *number = reader.u64();
  }
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kFaultsPerAudit || count > faults_seen) return false;
  faults.resize(count);
  for (Fault& fault : faults) {
    const uint8_t kind = reader.u8();
    if (kind > static_cast<uint8_t>(FaultKind::kLast)) return false;
    fault.kind = static_cast<FaultKind>(kind);
    fault.settled = reader.u8() != 0;
    fault.table = reader.u32();
    fault.offset = reader.u64();
    fault.identity = reader.u64();
    fault.detail = reader.u64();
    fault.key = std::string(reader.bytes());
  }
  return reader.at_end();
}

}  // namespace rdmacc
