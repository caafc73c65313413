// Replaces what a server does with the files of its data directory (LD_PRELOAD): it is done and
// noted in the journal, and an fsync settles it without waiting for a disk. Not noted, since
// PostgreSQL has no need of them there: mappings, copy_file_range, sync_file_range as a promise,
// syncfs, O_DSYNC, and streams' writes one by one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/power/faults.h"
#include "tests/power/journal.h"

#define HOOK __attribute__((visibility("default")))

typedef struct Place {
  struct stat status;
  char path[kPathBytesMax];
} Place;

// ---- Making files, and making them empty

static bool exists(const char* path) {
  struct stat status;
  return lstat(path, &status) == 0;
}

// Everything that the file has may be replaced.
static void keep_whole(const char* path) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    const int journal = journal_open_file(status.st_ino);
    journal_keep(journal, fd, 0, UINT64_MAX);
    journal_close(journal);
  }
  journal_close(fd);
}

static void note_made(int names, uint64_t record, const char* path) {
  struct stat status;
  const int saved = errno;
  if (lstat(path, &status) == 0) {
    journal_note_inode(names, record, status.st_ino);
    if (S_ISREG(status.st_mode)) journal_note_new_name(status.st_ino, true);
  }
  errno = saved;
}

static int open_noted(int folder, const char* path, int flags, int mode) {
  char absolute[kPathBytesMax];
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0 && (flags & O_TMPFILE) != O_TMPFILE;
  if (!changes || folder != AT_FDCWD || !journal_path_in_tree(path, absolute)) {
    return (int)syscall(SYS_openat, folder, path, flags, mode);
  }
  const int names = journal_open_names();
  uint64_t record = 0;
  int fd = -1;
  if (exists(absolute)) {
    if ((flags & O_TRUNC) != 0) keep_whole(absolute);
  } else if (fault_strikes(kFaultCreate, absolute)) {
    goto done;
  } else {
    record = journal_note_name(names, kCreated, absolute, "");
  }
  fd = (int)syscall(SYS_openat, folder, path, flags, mode);
  if (fd >= 0 && record != 0) note_made(names, record, absolute);
done:
  journal_close(names);
  return fd;
}

static int mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, int) : 0;
}

HOOK int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_noted(AT_FDCWD, path, flags, mode);
}

HOOK int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_noted(folder, path, flags, mode);
}

HOOK int creat(const char* path, mode_t mode) {
  return open_noted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, (int)mode);
}

// A stream's writes are not seen: all that the file has, and will have, counts as replaced now.
HOOK FILE* fopen(const char* path, const char* mode) {
  FILE* (*next)(const char*, const char*) =
      (FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, "fopen");
  char absolute[kPathBytesMax];
  if (strpbrk(mode, "wa+") == NULL || !journal_path_in_tree(path, absolute)) {
    return next(path, mode);
  }
  const int names = journal_open_names();
  const bool old = exists(absolute);
  FILE* stream = NULL;
  if (!old && fault_strikes(kFaultCreate, absolute)) {
    journal_close(names);
    return NULL;
  }
  if (old) keep_whole(absolute);
  const uint64_t record = old ? 0 : journal_note_name(names, kCreated, absolute, "");
  stream = next(path, mode);
  if (stream != NULL && record != 0) {
    note_made(names, record, absolute);
    keep_whole(absolute);
  }
  journal_close(names);
  return stream;
}

// ---- Writing

// The journal of the file, locked, with what is going to be replaced; -1: not ours; -2: it fails.
static int begin_change(int fd, uint64_t offset, uint64_t length, uint32_t operation) {
  Place place;
  if (!journal_fd_in_tree(fd, &place.status, place.path) || !S_ISREG(place.status.st_mode)) {
    return -1;
  }
  const uint64_t size = (uint64_t)place.status.st_size;
  if (operation != 0 && offset + length > size) operation |= kFaultExtend;
  if (fault_strikes(operation, place.path)) return -2;
  const int journal = journal_open_file(place.status.st_ino);
  journal_keep(journal, fd, offset, length);
  return journal;
}

static ssize_t end_change(int journal, ssize_t result) {
  if (journal >= 0) journal_close(journal);
  return result;
}

static uint64_t position(int fd) {
  struct stat status;
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_APPEND) != 0 && fstat(fd, &status) == 0) {
    return (uint64_t)status.st_size;
  }
  const off_t at = lseek(fd, 0, SEEK_CUR);
  return at < 0 ? 0 : (uint64_t)at;  // then it is no file
}

static uint64_t bytes_of(const struct iovec* parts, int count) {
  uint64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
  return bytes;
}

static int begin_change_here(int fd, uint64_t length) {
  if (!journal_is_on()) return -1;
  const int saved = errno;
  const uint64_t at = position(fd);
  errno = saved;
  return begin_change(fd, at, length, kFaultWrite);
}

HOOK ssize_t write(int fd, const void* from, size_t bytes) {
  const int journal = begin_change_here(fd, bytes);
  return journal == -2 ? -1 : end_change(journal, syscall(SYS_write, fd, from, bytes));
}

HOOK ssize_t writev(int fd, const struct iovec* parts, int count) {
  const int journal = begin_change_here(fd, bytes_of(parts, count));
  return journal == -2 ? -1 : end_change(journal, syscall(SYS_writev, fd, parts, count));
}

HOOK ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  const int journal = begin_change(fd, (uint64_t)at, bytes, kFaultWrite);
  return journal == -2 ? -1 : end_change(journal, syscall(SYS_pwrite64, fd, from, bytes, at));
}

HOOK ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t at, int flags) {
  const int journal = begin_change(fd, (uint64_t)at, bytes_of(parts, count), kFaultWrite);
  return journal == -2 ? -1
                       : end_change(journal, syscall(SYS_pwritev2, fd, parts, count, at, 0, flags));
}

HOOK ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t at) {
  return pwritev2(fd, parts, count, at, 0);
}

HOOK int ftruncate(int fd, off_t size) {
  const int journal = begin_change(fd, (uint64_t)size, UINT64_MAX - (uint64_t)size, 0);
  return journal == -2 ? -1 : (int)end_change(journal, syscall(SYS_ftruncate, fd, size));
}

HOOK int truncate(const char* path, off_t size) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int result = ftruncate(fd, size);
  journal_close(fd);
  return result;
}

// ---- What lasts

static int settle(int fd, long call) {
  Place place;
  if (!journal_fd_in_tree(fd, &place.status, place.path)) return (int)syscall(call, fd);
  if (fault_strikes(kFaultFsync, place.path)) return -1;
  if (S_ISDIR(place.status.st_mode)) {
    journal_settle_folder(place.path);
  } else {
    journal_settle_file(place.status.st_ino);
  }
  return 0;
}

HOOK int fsync(int fd) { return settle(fd, SYS_fsync); }
HOOK int fdatasync(int fd) { return settle(fd, SYS_fdatasync); }

// The names under which programs with files of 64 bits know them.
#define ALIAS(name) __attribute__((visibility("default"), alias(#name)))
ALIAS(open) int open64(const char* path, int flags, ...);
ALIAS(openat) int openat64(int folder, const char* path, int flags, ...);
ALIAS(creat) int creat64(const char* path, mode_t mode);
ALIAS(fopen) FILE* fopen64(const char* path, const char* mode);
ALIAS(pwrite) ssize_t pwrite64(int fd, const void* from, size_t bytes, off_t at);
ALIAS(pwritev) ssize_t pwritev64(int fd, const struct iovec* parts, int count, off_t at);
ALIAS(pwritev2)
ssize_t pwritev64v2(int fd, const struct iovec* parts, int count, off_t at, int flags);
ALIAS(ftruncate) int ftruncate64(int fd, off_t size);
ALIAS(truncate) int truncate64(const char* path, off_t size);
