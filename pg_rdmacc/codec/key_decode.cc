
#include "pg_rdmacc/codec/key_codec.h"

extern "C" {
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
}

namespace {

constexpr uint64 kSignBit = 1ULL << 63;
constexpr uint32 kSignBit32 = 1U << 31;

class Reader {
 public:
  Reader(BridgeBytes* bytes, bool inverted) : bytes_(bytes), flip_(inverted ? 0xff : 0x00) {}

  unsigned char byte() {
    if (bytes_->size == 0) {
      ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED), errmsg("index entry ends too early")));
    }
    const auto value = static_cast<unsigned char>(*bytes_->data ^ flip_);
    bytes_->data++;
    bytes_->size--;
    return value;
  }

  uint64 number(int size) {
    uint64 value = 0;
    for (int i = 0; i < size; i++) value = value << 8 | byte();
    return value;
  }

  int64 int64_value() { return static_cast<int64>(number(sizeof(uint64)) ^ kSignBit); }

  /* What append_escaped() of the codec has written. */
  void escaped(StringInfo out) {
    for (;;) {
      const unsigned char next = byte();
      if (next == 0 && byte() == 0x01) return;
      appendStringInfoCharMacro(out, static_cast<char>(next));
    }
  }

 private:
  BridgeBytes* bytes_;
  unsigned char flip_;
};

Datum int_datum(Oid type, int64 value) {
  switch (type) {
    case INT2OID:
      return Int16GetDatum(static_cast<int16>(value));
    case INT4OID:
      return Int32GetDatum(static_cast<int32>(value));
    default:
      return Int64GetDatum(value);
  }
}

Datum bytes_datum(Oid type, Reader* reader) {
  StringInfoData text;
  initStringInfo(&text);
  reader->escaped(&text);
  if (type != NAMEOID) return PointerGetDatum(cstring_to_text_with_len(text.data, text.len));
  auto* name = static_cast<Name>(palloc0(NAMEDATALEN));
  memcpy(NameStr(*name), text.data, static_cast<size_t>(Min(text.len, NAMEDATALEN - 1)));
  return NameGetDatum(name);
}

Datum uuid_datum(Reader* reader) {
  auto* uuid = static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t)));
  for (unsigned char& byte : uuid->data) byte = reader->byte();
  return UUIDPGetDatum(uuid);
}

Datum timetz_datum(Reader* reader) {
  auto* value = static_cast<TimeTzADT*>(palloc0(sizeof(TimeTzADT)));
  const int64 universal = reader->int64_value();
  value->zone =
      static_cast<int32>(static_cast<uint32>(reader->number(sizeof(uint32))) ^ kSignBit32);
  value->time = universal - value->zone * USECS_PER_SEC;
  return TimeTzADTPGetDatum(value);
}

}  // namespace

bool rdmacc_key_is_decodable(Oid type) {
  switch (rdmacc_key_kind(type)) {
    case RDMACC_KEY_BOOL:
    case RDMACC_KEY_INT:
    case RDMACC_KEY_OID:
    case RDMACC_KEY_DATE:
    case RDMACC_KEY_INT64_TIME:
    case RDMACC_KEY_TIMETZ:
    case RDMACC_KEY_UUID:
    case RDMACC_KEY_BYTES:
    case RDMACC_KEY_CHAR:
    case RDMACC_KEY_ENUM:
    case RDMACC_KEY_UINT64:
      return true;
    default:
      return false;
  }
}

Datum rdmacc_key_decode(Oid type, bool inverted, BridgeBytes* bytes) {
  CHECK(bytes != nullptr && (bytes->size == 0 || bytes->data != nullptr));
  Reader reader(bytes, inverted);
  switch (rdmacc_key_kind(type)) {
    case RDMACC_KEY_BOOL:
      return BoolGetDatum(reader.byte() != 0);
    case RDMACC_KEY_INT:
      return int_datum(type, reader.int64_value());
    case RDMACC_KEY_OID:
    case RDMACC_KEY_ENUM:
      return ObjectIdGetDatum(static_cast<Oid>(reader.number(sizeof(Oid))));
    case RDMACC_KEY_DATE:
      return DateADTGetDatum(
          static_cast<DateADT>(static_cast<uint32>(reader.number(sizeof(uint32))) ^ kSignBit32));
    case RDMACC_KEY_INT64_TIME:
      return Int64GetDatum(reader.int64_value());
    case RDMACC_KEY_TIMETZ:
      return timetz_datum(&reader);
    case RDMACC_KEY_UUID:
      return uuid_datum(&reader);
    case RDMACC_KEY_BYTES:
      return bytes_datum(type, &reader);
    case RDMACC_KEY_CHAR:
      return CharGetDatum(static_cast<char>(reader.byte()));
    case RDMACC_KEY_UINT64:
      return UInt64GetDatum(reader.number(sizeof(uint64)));
    default:
      elog(ERROR, "a key of type %u is not the whole value", type);
  }
}
