#include "engine/storage/wire/loaded_rows.h"

#include "engine/storage/wire/messages.h"

namespace rdmacc {

void LoadRowsMessage::write(Rpc::Bytes& out) const {
  MessageWriter writer(out);
  writer.u32(load.table);
  writer.u64(load.stamp);
  writer.u8(load.check_absent ? 1 : 0);
  writer.u32(static_cast<uint32_t>(rows.size()));
  for (const RowToLoad& row : rows) {
    writer.bytes(row.key);
    writer.bytes(row.row);
  }
}

bool LoadRowsMessage::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  load.table = reader.u32();
  load.stamp = reader.u64();
  load.check_absent = reader.u8() != 0;
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > in.size() / kLoadedRowHead) return false;
  rows.clear();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::string_view key = reader.bytes();
    const std::string_view row = reader.bytes();
    if (key.empty() || key.size() > kKeyBytesMax || row.size() > kRowBytesMax) return false;
    rows.push_back({key, row, 0});
  }
  return reader.at_end() && load.stamp != 0;
}

}  // namespace rdmacc
