#include "engine/log/in_doubt_list.h"

namespace rdmacc {

void write_in_doubt_list(MessageWriter& out, const InDoubtList& list) {
  out.u64(list.unresolved);
  out.u32(static_cast<uint32_t>(list.transactions.size()));
  for (const InDoubt& doubt : list.transactions) {
    out.u16(doubt.worker);
    out.u16(doubt.node);
    out.u64(doubt.gtid.system_id);
    out.u64(doubt.gtid.xid);
    out.u64(doubt.lock_ctts);
    out.u64(doubt.stamp);
    out.u8(doubt.decided ? 1 : 0);
  }
}

bool read_in_doubt_list(MessageReader& in, InDoubtList& list) {
  list.unresolved = in.u64();
  const uint32_t count = in.u32();
  list.transactions.clear();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    InDoubt& doubt = list.transactions.emplace_back();
    doubt.worker = in.u16();
    doubt.node = in.u16();
    doubt.gtid.system_id = in.u64();
    doubt.gtid.xid = in.u64();
    doubt.lock_ctts = in.u64();
    doubt.stamp = in.u64();
    doubt.decided = in.u8() != 0;
  }
  return in.at_end();
}

}  // namespace rdmacc
