#include "pg_rdmacc/recovery/manifest.h"

extern "C" {
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "common/file_perm.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
}

namespace {

constexpr uint64 kMagic = UINT64CONST(0x31696e616d646d72); /* "rmdmani1" */
constexpr const char* kSuffix = ".manifest";
constexpr const char* kNewSuffix = ".new"; /* until it is whole */

struct ManifestHead {
  uint64 magic;
  uint64 system_id;
  XLogRecPtr redo;
  XLogRecPtr end;
  uint32 timeline;
  uint32 count;
};

void manifest_path(char* path, XLogRecPtr redo, const char* suffix) {
  snprintf(path, MAXPGPATH, "%s/%016llX%s", RDMACC_CHECKPOINT_FOLDER,
           static_cast<unsigned long long>(redo), suffix);
}

pg_crc32c checksum(const ManifestHead* head, const ManifestTable* tables) {
  pg_crc32c crc;
  INIT_CRC32C(crc);
  COMP_CRC32C(crc, head, sizeof(*head));
  COMP_CRC32C(crc, tables, sizeof(*tables) * head->count);
  FIN_CRC32C(crc);
  return crc;
}

bool read_part(int fd, void* to, Size bytes) {
  return read(fd, to, bytes) == static_cast<ssize_t>(bytes);
}

bool skip(const char* path, const char* why) {
  ereport(LOG, (errmsg("checkpoint \"%s\" is not used: %s", path, why)));
  return false;
}

/* False when it is not whole, or another system's. */
bool read_manifest(const char* path, Manifest* manifest) {
  const int fd = OpenTransientFile(path, O_RDONLY | PG_BINARY);
  if (fd < 0) {
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", path)));
  }
  ManifestHead head;
  struct stat status;
  bool whole = read_part(fd, &head, sizeof(head)) && head.magic == kMagic &&
               fstat(fd, &status) == 0 &&
               static_cast<uint64>(status.st_size) ==
                   sizeof(head) + sizeof(ManifestTable) * head.count + sizeof(pg_crc32c);
  if (whole) {
    const Size bytes = sizeof(ManifestTable) * head.count;
    auto* tables = static_cast<ManifestTable*>(palloc(bytes + 1));
    pg_crc32c stored = 0;
    whole = read_part(fd, tables, bytes) && read_part(fd, &stored, sizeof(stored)) &&
            stored == checksum(&head, tables) && head.system_id == GetSystemIdentifier();
    *manifest = {head.system_id, head.redo, head.end, head.timeline, head.count, tables};
  }
  CloseTransientFile(fd);
  return whole || skip(path, "it is damaged, or of another system");
}

/* A copy may have the manifest and not all of its files. */
bool has_its_files(const Manifest* manifest) {
  for (uint32 i = 0; i < manifest->count; i++) {
    const ManifestTable* table = &manifest->tables[i];
    char path[MAXPGPATH];
    rdmacc_table_file_path(path, table->table.id, table->file);
    struct stat status;
    if (stat(path, &status) != 0) return skip(path, "the file is missing");
    if (static_cast<uint64>(status.st_size) != table->bytes) {
      return skip(path, "the file has another size");
    }
  }
  return true;
}

bool on_own_history(const Manifest* manifest, List* history, XLogRecPtr until) {
  if (until == InvalidXLogRecPtr) return true;
  return manifest->end <= until && tliInHistory(manifest->timeline, history) &&
         tliOfPointInHistory(manifest->end - 1, history) == manifest->timeline;
}

TimeLineID own_timeline(void) {
  TimeLineID timeline = 0;
  if (!RecoveryInProgress()) return GetWALInsertionTimeLine();
  GetXLogReplayRecPtr(&timeline);
  return timeline;
}

bool parse_manifest_name(const char* name, XLogRecPtr* redo) {
  unsigned long long number = 0;
  int used = 0;
  if (sscanf(name, "%16llX.manifest%n", &number, &used) != 1 || name[used] != '\0' || used == 0) {
    return false;
  }
  *redo = number;
  return true;
}

bool parse_table_file_name(const char* name, unsigned* table, XLogRecPtr* redo) {
  unsigned long long number = 0;
  int used = 0;
  const bool parsed = sscanf(name, "%8X.%16llX.rows%n", table, &number, &used) == 2 && used > 0;
  *redo = number;
  return parsed && name[used] == '\0';
}

bool is_needed(const Manifest* manifest, unsigned table, XLogRecPtr redo) {
  if (redo >= manifest->redo) return true; /* of it, or of one that is just made */
  for (uint32 i = 0; i < manifest->count; i++) {
    if (manifest->tables[i].table.id == table && manifest->tables[i].file == redo) return true;
  }
  return false;
}

bool is_too_old(const Manifest* manifest, const char* name) {
  XLogRecPtr redo = 0;
  if (parse_manifest_name(name, &redo)) return redo < manifest->redo;
  unsigned table = 0;
  return parse_table_file_name(name, &table, &redo) && !is_needed(manifest, table, redo);
}

/* A manifest comes last, and names files of its own redo and of earlier ones. */
bool is_unfinished(const char* name, XLogRecPtr newest) {
  unsigned table = 0;
  XLogRecPtr redo = 0;
  if (parse_table_file_name(name, &table, &redo)) return redo > newest;
  const Size length = strlen(name);
  return length > strlen(kNewSuffix) && strcmp(name + length - strlen(kNewSuffix), kNewSuffix) == 0;
}

XLogRecPtr newest_manifest(void) {
  XLogRecPtr newest = InvalidXLogRecPtr;
  DIR* folder = AllocateDir(RDMACC_CHECKPOINT_FOLDER);
  struct dirent* entry;
  while ((entry = ReadDir(folder, RDMACC_CHECKPOINT_FOLDER)) != nullptr) {
    XLogRecPtr redo = 0;
    if (parse_manifest_name(entry->d_name, &redo)) newest = Max(newest, redo);
  }
  FreeDir(folder);
  return newest;
}

void remove_file(const char* name) {
  char path[MAXPGPATH * 2];
  snprintf(path, sizeof(path), "%s/%s", RDMACC_CHECKPOINT_FOLDER, name);
  if (unlink(path) != 0) {
    ereport(LOG, (errcode_for_file_access(), errmsg("could not remove file \"%s\": %m", path)));
  }
}

void write_part(int fd, const char* path, const void* from, Size bytes) {
  errno = 0;
  if (write(fd, from, bytes) == static_cast<ssize_t>(bytes)) return;
  if (errno == 0) errno = ENOSPC;
  ereport(ERROR, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", path)));
}

}  // namespace

void rdmacc_table_file_path(char* path, uint32 table, XLogRecPtr redo) {
  snprintf(path, MAXPGPATH, "%s/%08X.%016llX.rows", RDMACC_CHECKPOINT_FOLDER, table,
           static_cast<unsigned long long>(redo));
}

bool rdmacc_manifest_read(XLogRecPtr until, Manifest* manifest) {
  *manifest = {};
  DIR* folder = AllocateDir(RDMACC_CHECKPOINT_FOLDER);
  if (folder == nullptr && errno == ENOENT) return false;
  List* history = until != InvalidXLogRecPtr ? readTimeLineHistory(own_timeline()) : NIL;
  bool found = false;
  struct dirent* entry;
  while ((entry = ReadDir(folder, RDMACC_CHECKPOINT_FOLDER)) != nullptr) {
    XLogRecPtr redo = 0;
    if (!parse_manifest_name(entry->d_name, &redo) || (found && redo <= manifest->redo)) continue;
    char path[MAXPGPATH];
    manifest_path(path, redo, kSuffix);
    Manifest read = {};
    if (!read_manifest(path, &read) || !on_own_history(&read, history, until) ||
        !has_its_files(&read)) {
      continue;
    }
    *manifest = read;
    found = true;
  }
  FreeDir(folder);
  return found;
}

void rdmacc_manifest_write(const Manifest* manifest) {
  char path[MAXPGPATH];
  char new_path[MAXPGPATH];
  manifest_path(path, manifest->redo, kSuffix);
  manifest_path(new_path, manifest->redo, kNewSuffix);
  const ManifestHead head = {kMagic,        manifest->system_id, manifest->redo,
                             manifest->end, manifest->timeline,  manifest->count};
  const pg_crc32c crc = checksum(&head, manifest->tables);
  const int fd = OpenTransientFile(new_path, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
  if (fd < 0) {
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", new_path)));
  }
  write_part(fd, new_path, &head, sizeof(head));
  write_part(fd, new_path, manifest->tables, sizeof(ManifestTable) * manifest->count);
  write_part(fd, new_path, &crc, sizeof(crc));
  if (pg_fsync(fd) != 0) {
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not fsync file \"%s\": %m", new_path)));
  }
  CloseTransientFile(fd);
  fsync_fname(RDMACC_CHECKPOINT_FOLDER, true); /* the files that it names are there */
  durable_rename(new_path, path, ERROR);
}

void rdmacc_manifest_remove_older(const Manifest* manifest) {
  DIR* folder = AllocateDir(RDMACC_CHECKPOINT_FOLDER);
  struct dirent* entry;
  while ((entry = ReadDir(folder, RDMACC_CHECKPOINT_FOLDER)) != nullptr) {
    if (is_too_old(manifest, entry->d_name)) remove_file(entry->d_name);
  }
  FreeDir(folder);
}

void rdmacc_manifest_remove_unfinished(void) {
  const XLogRecPtr newest = newest_manifest();
  DIR* folder = AllocateDir(RDMACC_CHECKPOINT_FOLDER);
  struct dirent* entry;
  while ((entry = ReadDir(folder, RDMACC_CHECKPOINT_FOLDER)) != nullptr) {
    if (is_unfinished(entry->d_name, newest)) remove_file(entry->d_name);
  }
  FreeDir(folder);
}

bool rdmacc_checkpoints_exist(void) {
  DIR* folder = AllocateDir(RDMACC_CHECKPOINT_FOLDER);
  if (folder == nullptr) return false;
  bool exist = false;
  struct dirent* entry;
  while ((entry = ReadDirExtended(folder, RDMACC_CHECKPOINT_FOLDER, LOG)) != nullptr) {
    XLogRecPtr redo = 0;
    exist = exist || parse_manifest_name(entry->d_name, &redo);
  }
  FreeDir(folder);
  return exist;
}
