#define _GNU_SOURCE
#include "tests/power/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// The hooks replace libc's functions in this library, too: it makes system calls itself.
static int sys_open(const char* path, int flags, int mode) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}
static ssize_t sys_pwrite(int fd, const void* from, size_t bytes, uint64_t offset) {
  return syscall(SYS_pwrite64, fd, from, bytes, offset);
}
static ssize_t sys_pread(int fd, void* to, size_t bytes, uint64_t offset) {
  return syscall(SYS_pread64, fd, to, bytes, offset);
}

// A journal that lacks a record proves nothing.
static void must(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "power layer: %s: %s\n", what, strerror(errno));
  abort();
}

static char tree[kPathBytesMax];
static char folder_of_journal[kPathBytesMax];

__attribute__((constructor)) static void read_environment(void) {
  const char* wanted = getenv("POWER_TREE");
  const char* journal = getenv("POWER_JOURNAL");
  if (wanted == NULL || journal == NULL || wanted[0] != '/' || journal[0] != '/') return;
  snprintf(folder_of_journal, sizeof(folder_of_journal), "%s", journal);
  snprintf(tree, sizeof(tree), "%s", wanted);
}

bool journal_is_on(void) { return tree[0] != '\0'; }

const char* journal_folder(void) { return folder_of_journal; }

static bool is_in_tree(const char* absolute) {
  const size_t length = strlen(tree);
  return strncmp(absolute, tree, length) == 0 &&
         (absolute[length] == '/' || absolute[length] == '\0');
}

const char* journal_relative(const char* absolute) {
  const char* rest = absolute + strlen(tree);
  return *rest == '/' ? rest + 1 : rest;
}

bool journal_path_in_tree(const char* path, char* absolute) {
  if (!journal_is_on() || path == NULL) return false;
  char here[kPathBytesMax] = "";
  if (path[0] != '/') {
    if (getcwd(here, sizeof(here)) == NULL) return false;
    while (strncmp(path, "./", 2) == 0) path += 2;
    if (strcmp(path, ".") == 0) path = "";
  }
  const char* between = path[0] == '/' || path[0] == '\0' ? "" : "/";
  const int length = snprintf(absolute, kPathBytesMax, "%s%s%s", here, between, path);
  return length < kPathBytesMax && is_in_tree(absolute);
}

bool journal_fd_in_tree(int fd, struct stat* status, char* absolute) {
  if (!journal_is_on()) return false;
  const int saved = errno;
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  bool found = fstat(fd, status) == 0 && (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode));
  if (found) {
    const ssize_t length = readlink(link, absolute, kPathBytesMax - 1);
    found = length > 0;
    if (found) absolute[length] = '\0';
  }
  errno = saved;
  return found && is_in_tree(absolute);
}

static int open_locked(const char* name) {
  char path[kPathBytesMax + 64];
  snprintf(path, sizeof(path), "%s/%s", journal_folder(), name);
  const int fd = sys_open(path, O_RDWR | O_CREAT, 0600);
  must(fd >= 0, path);
  int locked;
  while ((locked = flock(fd, LOCK_EX)) != 0 && errno == EINTR) {
  }
  must(locked == 0, "flock");
  return fd;
}

void journal_close(int journal) {
  const int saved = errno;
  syscall(SYS_close, journal);
  errno = saved;
}

int journal_open_file(ino_t inode) {
  char name[64];
  snprintf(name, sizeof(name), "files/%lu", (unsigned long)inode);
  return open_locked(name);
}

static struct FileHead read_head(int journal) {
  struct FileHead head = {0, 0};
  const ssize_t got = sys_pread(journal, &head, sizeof(head), 0);
  must(got == 0 || got == (ssize_t)sizeof(head), "the head of a journal");
  return head;
}

static void write_head(int journal, struct FileHead head) {
  must(sys_pwrite(journal, &head, sizeof(head), 0) == (ssize_t)sizeof(head), "write of a head");
}

// What a descriptor that may not read has.
static int readable(int fd) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const int again = sys_open(link, O_RDONLY, 0);
  must(again >= 0, "opening a file again");
  return again;
}

void journal_keep(int journal, int fd, uint64_t offset, uint64_t length) {
  const int saved = errno;
  struct stat status;
  must(fstat(fd, &status) == 0, "fstat");
  struct FileRecord record = {offset, length, (uint64_t)status.st_size, 0};
  if (offset < record.size_before) {
    record.kept = record.size_before - offset < length ? record.size_before - offset : length;
  }
  char* old = malloc(record.kept + 1);
  must(old != NULL, "memory");
  if (record.kept > 0) {
    const int from = readable(fd);
    for (uint64_t at = 0; at < record.kept;) {
      const ssize_t got = sys_pread(from, old + at, record.kept - at, offset + at);
      must(got > 0, "read of what is replaced");
      at += (uint64_t)got;
    }
    journal_close(from);
  }
  struct FileHead head = read_head(journal);
  const uint64_t at = sizeof(head) + head.bytes;
  must(sys_pwrite(journal, &record, sizeof(record), at) == (ssize_t)sizeof(record) &&
           sys_pwrite(journal, old, record.kept, at + sizeof(record)) == (ssize_t)record.kept,
       "write of a record");
  head.bytes += sizeof(record) + record.kept;
  write_head(journal, head);
  free(old);
  errno = saved;
}

void journal_note_new_name(ino_t inode, bool new_file) {
  const int journal = journal_open_file(inode);
  struct FileHead head = read_head(journal);
  if (new_file) head.bytes = 0;  // of another file, whose inode it was
  head.unsettled_name = 1;
  write_head(journal, head);
  journal_close(journal);
}

// ---- Names

int journal_open_names(void) { return open_locked("names"); }

static struct NamesHead read_names_head(int names) {
  struct NamesHead head = {0, 0};
  const ssize_t got = sys_pread(names, &head, sizeof(head), 0);
  must(got == 0 || got == (ssize_t)sizeof(head), "the head of the names");
  return head;
}

// A file that is going to lose this name can be found afterwards.
static bool keep_link(const char* path, uint64_t number) {
  struct stat status;
  if (lstat(path, &status) != 0 || S_ISDIR(status.st_mode)) return false;
  char kept[kPathBytesMax + 64];
  snprintf(kept, sizeof(kept), "%s/kept/%lu", journal_folder(), (unsigned long)number);
  must(syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, kept, 0) == 0 || errno == EEXIST, kept);
  return true;
}

uint64_t journal_note_name(int names, enum NameChange change, const char* path,
                           const char* second) {
  const int saved = errno;
  struct NamesHead head = read_names_head(names);
  struct stat status;
  const size_t first_bytes = strlen(path) + 1;
  const size_t second_bytes = strlen(second) + 1;
  struct NameRecord record = {.change = change, .number = head.count};
  record.bytes = (uint32_t)(first_bytes + second_bytes);
  if (change != kCreated && change != kMadeFolder && lstat(path, &status) == 0) {
    record.inode = status.st_ino;
  }
  if (change == kUnlinked) record.replaced = keep_link(path, head.count);
  if (change == kRenamed) record.replaced = keep_link(second, head.count);
  const uint64_t place = sizeof(head) + head.bytes;
  struct iovec parts[] = {{&record, sizeof(record)},
                          {(void*)(uintptr_t)path, first_bytes},
                          {(void*)(uintptr_t)second, second_bytes}};
  const size_t bytes = sizeof(record) + record.bytes;
  must(syscall(SYS_pwritev, names, parts, 3, place, 0) == (ssize_t)bytes, "write of a name");
  head.bytes += bytes;
  head.count++;
  must(sys_pwrite(names, &head, sizeof(head), 0) == (ssize_t)sizeof(head), "head of the names");
  errno = saved;
  return place;
}

void journal_note_inode(int names, uint64_t place, ino_t inode) {
  const uint64_t value = inode;
  must(sys_pwrite(names, &value, sizeof(value), place + offsetof(struct NameRecord, inode)) ==
           (ssize_t)sizeof(value),
       "write of an inode");
}

static bool is_in_folder(const char* path, const char* folder) {
  const size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && path[length] == '/' &&
         strchr(path + length + 1, '/') == NULL;
}

// Those of a folder, or a file's own name.
static void settle_names(const char* folder, ino_t inode) {
  const int names = journal_open_names();
  const struct NamesHead head = read_names_head(names);
  for (uint64_t at = sizeof(head); at < sizeof(head) + head.bytes;) {
    struct NameRecord record;
    char paths[2 * kPathBytesMax];
    must(sys_pread(names, &record, sizeof(record), at) == (ssize_t)sizeof(record) &&
             record.bytes <= sizeof(paths) &&
             sys_pread(names, paths, record.bytes, at + sizeof(record)) == (ssize_t)record.bytes,
         "read of a name");
    const char* second = paths + strlen(paths) + 1;
    const bool settles = folder != NULL
                             ? is_in_folder(paths, folder) || is_in_folder(second, folder)
                             : record.change == kCreated && record.inode == inode;
    if (settles && !record.settled) {
      record.settled = 1;
      must(sys_pwrite(names, &record, sizeof(record), at) == (ssize_t)sizeof(record), "settling");
    }
    at += sizeof(record) + record.bytes;
  }
  journal_close(names);
}

void journal_settle_folder(const char* absolute) { settle_names(absolute, 0); }

void journal_settle_file(ino_t inode) {
  const int journal = journal_open_file(inode);
  struct FileHead head = read_head(journal);
  const bool name = head.unsettled_name != 0;
  write_head(journal, (struct FileHead){0, 0});
  must(syscall(SYS_ftruncate, journal, sizeof(head)) == 0, "ftruncate");
  journal_close(journal);
  if (name) settle_names(NULL, inode);
}
