// Changes of names in a server's data directory: done, and noted in the journal before.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/power/faults.h"
#include "tests/power/journal.h"

#define HOOK __attribute__((visibility("default")))

static ino_t note_inode_of(int names, uint64_t record, const char* path) {
  struct stat status;
  if (lstat(path, &status) != 0) return 0;
  journal_note_inode(names, record, status.st_ino);
  return status.st_ino;
}

HOOK int unlink(const char* path) {
  char absolute[kPathBytesMax];
  struct stat status;
  if (!journal_path_in_tree(path, absolute) || lstat(absolute, &status) != 0) {
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  }
  const int names = journal_open_names();
  journal_note_name(names, kUnlinked, absolute, "");
  const int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  journal_close(names);
  return result;
}

HOOK int rename(const char* from, const char* to) {
  char absolute[kPathBytesMax];
  char absolute_to[kPathBytesMax];
  if (!journal_path_in_tree(from, absolute) || !journal_path_in_tree(to, absolute_to)) {
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
  }
  if (fault_strikes(kFaultCreate, absolute_to)) return -1;
  const int names = journal_open_names();
  journal_note_name(names, kRenamed, absolute, absolute_to);
  const int result = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
  journal_close(names);
  return result;
}

HOOK int link(const char* from, const char* to) {
  char absolute[kPathBytesMax];
  if (!journal_path_in_tree(to, absolute)) {
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  }
  const int names = journal_open_names();
  const uint64_t record = journal_note_name(names, kCreated, absolute, "");
  const int result = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (result == 0) {
    const ino_t inode = note_inode_of(names, record, absolute);
    journal_note_new_name(inode, false);
  }
  journal_close(names);
  return result;
}

HOOK int symlink(const char* target, const char* path) {
  char absolute[kPathBytesMax];
  if (!journal_path_in_tree(path, absolute)) {
    return (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
  }
  const int names = journal_open_names();
  const uint64_t record = journal_note_name(names, kCreated, absolute, "");
  const int result = (int)syscall(SYS_symlinkat, target, AT_FDCWD, path);
  if (result == 0) note_inode_of(names, record, absolute);
  journal_close(names);
  return result;
}

HOOK int mkdir(const char* path, mode_t mode) {
  char absolute[kPathBytesMax];
  struct stat status;
  if (!journal_path_in_tree(path, absolute) || lstat(absolute, &status) == 0) {
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  }
  const int names = journal_open_names();
  const uint64_t record = journal_note_name(names, kMadeFolder, absolute, "");
  const int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  if (result == 0) note_inode_of(names, record, absolute);
  journal_close(names);
  return result;
}

HOOK int rmdir(const char* path) {
  char absolute[kPathBytesMax];
  if (!journal_path_in_tree(path, absolute)) {
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
  }
  const int names = journal_open_names();
  journal_note_name(names, kRemovedFolder, absolute, "");
  const int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
  journal_close(names);
  return result;
}
