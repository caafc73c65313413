#pragma once
#include <map>
#include <set>
#include <string>

#include "storage_cluster.h"

namespace rdmacc {

// What a test finds in a node's region by reading it all, without the arena's help.
struct RegionAudit {
  std::map<uint64_t, uint64_t> reachable;  // offset -> bytes of every unit of a live table
  std::set<uint64_t> slots;                // linked ones
  uint64_t groups = 0, chained_buckets = 0, locked_gaps = 0, entries = 0;
  uint32_t root_depth_max = 0;
  std::string fault;  // empty: sound

  static RegionAudit of(const std::byte* region, const RegionLayout& layout);
  // False if it overlaps with what is reachable already.
  bool add(uint64_t offset, uint64_t bytes);

 private:
  void table(const std::byte* region, const DirectoryEntry& entry);
  void group(const std::byte* region, const DirectoryEntry& entry, uint64_t offset);
};

}  // namespace rdmacc
