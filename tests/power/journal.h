#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

// What is needed to forget writes: for each file what they replaced since its last fsync, and the
// changes of names that no fsync of a folder has settled. roll_back.py reads it.
//
//   JOURNAL/files/INODE   FileHead, FileRecords, each with the bytes that it keeps
//   JOURNAL/names         NamesHead, NameRecords, each with two paths
//   JOURNAL/kept/NUMBER   links to files that a change of names has removed
//
// A head says how much is valid, so that a process may die at any point. A process that
// changes a file, or names, holds the journal's lock from before the record until after the change.

enum { kPathBytesMax = 4096 };

struct FileHead {
  uint64_t bytes;           // of records
  uint64_t unsettled_name;  // no fsync has made the file's name last
};

struct FileRecord {
  uint64_t offset;
  uint64_t length;       // of what was written, or cut off
  uint64_t size_before;  // of the file
  uint64_t kept;         // bytes that follow
};

enum NameChange { kCreated = 1, kMadeFolder, kUnlinked, kRenamed, kRemovedFolder };

struct NamesHead {
  uint64_t bytes;
  uint64_t count;
};

struct NameRecord {
  uint32_t change;
  uint32_t settled;
  uint64_t inode;     // 0: not known yet
  uint64_t number;    // of the file in kept/
  uint32_t replaced;  // a rename's: there is such a file
  uint32_t bytes;     // of both paths, each with its end
};

// From the environment: POWER_TREE, POWER_JOURNAL. Without these nothing is recorded.
bool journal_is_on(void);
const char* journal_folder(void);

// The absolute path, if it is in the tree.
bool journal_path_in_tree(const char* path, char* absolute);
// Of an open file or folder in the tree.
bool journal_fd_in_tree(int fd, struct stat* status, char* absolute);
const char* journal_relative(const char* absolute);

// The journal of a file, locked until it is closed.
int journal_open_file(ino_t inode);
void journal_close(int journal);
// What a change of `length` bytes is going to replace.
void journal_keep(int journal, int fd, uint64_t offset, uint64_t length);
// Its next fsync settles that, too.
void journal_note_new_name(ino_t inode, bool new_file);
// All of it is on disk.
void journal_settle_file(ino_t inode);

int journal_open_names(void);
// Before the change; the record's place.
uint64_t journal_note_name(int names, enum NameChange change, const char* path, const char* second);
void journal_note_inode(int names, uint64_t place, ino_t inode);
void journal_settle_folder(const char* absolute);
