#include "pg_rdmacc/recovery/table_file.h"

#include <lz4.h>

extern "C" {
#include <fcntl.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
}

struct TableFile {
  int fd;
  uint32 table;
  char* path;
  StringInfoData rows; /* of the block that is filled or read, not compressed */
  StringInfoData packed;
  uint32 count; /* rows in it */
  int at;       /* the next row to read */
  TableFileSize size;
};

namespace {

constexpr uint64 kMagic = UINT64CONST(0x3373776f72646d72); /* "rmdrows3" */
constexpr uint64 kVersionBits = UINT64CONST(0xff) << 56;   /* the last character */
constexpr int kBlockBytes = 256 * 1024;                    /* after which a block ends */
constexpr uint32 kBlockBytesMax = 4 * 1024 * 1024;         /* with the longest of rows */

struct FileHead {
  uint64 magic;
  uint32 table;
  uint32 unused;
};

struct BlockHead {
  uint32 rows;
  uint32 bytes;        /* 0: the end */
  uint32 packed_bytes; /* as many as bytes: not compressed */
  uint32 checksum;     /* of what is stored, and of the words above */
  uint64 rows_before;
};

struct RowHead {
  uint32 key_bytes;
  uint32 row_bytes;
};

uint32 checksum(BlockHead head, const char* data, Size bytes) {
  pg_crc32c crc;
  head.checksum = 0;
  INIT_CRC32C(crc);
  COMP_CRC32C(crc, &head, sizeof(head));
  COMP_CRC32C(crc, data, bytes);
  FIN_CRC32C(crc);
  return crc;
}

[[noreturn]] void damaged(const TableFile* file) {
  ereport(ERROR,
          (errcode(ERRCODE_DATA_CORRUPTED),
           errmsg("file \"%s\" is damaged after row " UINT64_FORMAT, file->path, file->size.rows)));
}

void check_version(const TableFile* file, const FileHead& head) {
  if (head.magic == kMagic || (head.magic & ~kVersionBits) != (kMagic & ~kVersionBits)) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("file \"%s\" was written by another version of rdmacc", file->path),
                  errhint("Dump the database with that version, and restore it with this one.")));
}

void write_all(TableFile* file, const void* data, Size bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    errno = 0;
    const ssize_t done = write(file->fd, from, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      if (errno == 0) errno = ENOSPC;
      ereport(ERROR,
              (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", file->path)));
    }
    from += done;
    bytes -= static_cast<Size>(done);
    file->size.bytes += static_cast<uint64>(done);
  }
}

void read_all(TableFile* file, void* data, Size bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t done = read(file->fd, to, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      ereport(ERROR,
              (errcode_for_file_access(), errmsg("could not read file \"%s\": %m", file->path)));
    }
    if (done == 0) damaged(file);
    to += done;
    bytes -= static_cast<Size>(done);
    file->size.bytes += static_cast<uint64>(done);
  }
}

TableFile* open_file(const char* path, uint32 table, int flags) {
  auto* file = static_cast<TableFile*>(palloc0(sizeof(TableFile)));
  file->path = pstrdup(path);
  file->table = table;
  initStringInfo(&file->rows);
  initStringInfo(&file->packed);
  file->fd = OpenTransientFile(path, flags | PG_BINARY);
  if (file->fd < 0) {
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", path)));
  }
  return file;
}

void write_block(TableFile* file) {
  BlockHead head = {};
  head.rows = file->count;
  head.rows_before = file->size.rows - file->count;
  head.bytes = static_cast<uint32>(file->rows.len);
  CHECK(head.bytes <= kBlockBytesMax);
  const char* stored = file->rows.data;
  head.packed_bytes = head.bytes;
  if (head.bytes > 0) {
    const int bound = LZ4_compressBound(file->rows.len);
    enlargeStringInfo(&file->packed, bound);
    const int packed =
        LZ4_compress_default(file->rows.data, file->packed.data, file->rows.len, bound);
    if (packed > 0 && packed < file->rows.len) {
      head.packed_bytes = static_cast<uint32>(packed);
      stored = file->packed.data;
    }
  }
  head.checksum = checksum(head, stored, head.packed_bytes);
  write_all(file, &head, sizeof(head));
  write_all(file, stored, head.packed_bytes);
  resetStringInfo(&file->rows);
  resetStringInfo(&file->packed);
  file->count = 0;
}

void unpack(TableFile* file, const BlockHead& head) {
  if (head.packed_bytes == head.bytes) {
    appendBinaryStringInfo(&file->rows, file->packed.data, static_cast<int>(head.bytes));
    return;
  }
  enlargeStringInfo(&file->rows, static_cast<int>(head.bytes));
  const int bytes =
      LZ4_decompress_safe(file->packed.data, file->rows.data, static_cast<int>(head.packed_bytes),
                          static_cast<int>(head.bytes));
  if (bytes != static_cast<int>(head.bytes)) damaged(file);
  file->rows.len = bytes;
}

/* False at the end of the file. */
bool read_block(TableFile* file) {
  BlockHead head;
  read_all(file, &head, sizeof(head));
  if (head.bytes > kBlockBytesMax || head.packed_bytes > head.bytes ||
      head.rows_before != file->size.rows) {
    damaged(file);
  }
  resetStringInfo(&file->rows);
  resetStringInfo(&file->packed);
  enlargeStringInfo(&file->packed, static_cast<int>(head.packed_bytes));
  read_all(file, file->packed.data, head.packed_bytes);
  if (checksum(head, file->packed.data, head.packed_bytes) != head.checksum) damaged(file);
  file->at = 0;
  file->count = head.rows;
  if (head.bytes == 0) return false;
  unpack(file, head);
  return true;
}

}  // namespace

TableFile* table_file_create(const char* path, uint32 table) {
  TableFile* file = open_file(path, table, O_WRONLY | O_CREAT | O_TRUNC);
  const FileHead head = {kMagic, table, 0};
  write_all(file, &head, sizeof(head));
  return file;
}

void table_file_add(TableFile* file, BridgeBytes key, BridgeBytes row) {
  const RowHead head = {static_cast<uint32>(key.size), static_cast<uint32>(row.size)};
  appendBinaryStringInfo(&file->rows, reinterpret_cast<const char*>(&head), sizeof(head));
  appendBinaryStringInfo(&file->rows, key.data, static_cast<int>(key.size));
  appendBinaryStringInfo(&file->rows, row.data, static_cast<int>(row.size));
  file->count++;
  file->size.rows++;
  if (file->rows.len >= kBlockBytes) write_block(file);
}

TableFileSize table_file_finish(TableFile* file) {
  if (file->count > 0) write_block(file);
  write_block(file); /* the end */
  if (pg_fsync(file->fd) != 0) {
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not fsync file \"%s\": %m", file->path)));
  }
  const TableFileSize size = file->size;
  table_file_close(file);
  return size;
}

TableFile* table_file_open(const char* path, uint32 table) {
  TableFile* file = open_file(path, table, O_RDONLY);
  FileHead head;
  read_all(file, &head, sizeof(head));
  check_version(file, head);
  if (head.magic != kMagic || head.table != table) damaged(file);
  return file;
}

bool table_file_next(TableFile* file, BridgeWrite* row) {
  while (file->count == 0) {
    if (!read_block(file)) return false;
  }
  const int left = file->rows.len - file->at;
  RowHead head;
  if (left < static_cast<int>(sizeof(head))) damaged(file);
  const char* at = file->rows.data + file->at;
  memcpy(&head, at, sizeof(head));
  const uint64 bytes = sizeof(head) + static_cast<uint64>(head.key_bytes) + head.row_bytes;
  if (head.key_bytes == 0 || bytes > static_cast<uint64>(left)) damaged(file);
  row->table = file->table;
  row->deleted = false;
  row->key = {at + sizeof(head), head.key_bytes};
  row->row = {row->key.data + head.key_bytes, head.row_bytes};
  file->at += static_cast<int>(bytes);
  file->count--;
  file->size.rows++;
  return true;
}

void table_file_close(TableFile* file) {
  CloseTransientFile(file->fd);
  pfree(file->rows.data);
  pfree(file->packed.data);
  pfree(file->path);
  pfree(file);
}
