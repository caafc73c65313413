#pragma once
#include "engine/log/log_record.h"
#include "engine/log/resolve.h"
#include "engine/txn/driver/engine_context.h"

// The Commit stage: what a logged transaction does to the headers that it holds locked, by its
// protocol's list of effects.

namespace rdmacc {

struct InstallOptions {
  std::span<const Effect> effects;  // of the record's protocol
  // Only headers that the record's transaction still holds are touched, so that doing it again
  // (after a node's restart, or for a coordinator that died) does nothing twice.
  bool guarded = false;
  // The record's transaction is still under way, so that no page that it uses becomes something
  // else: a guarded install takes its locks off what was dropped meanwhile. Otherwise resolution
  // looks for them.
  bool underway = false;
  // Overflow blocks of versions that had to make room, or got none, are appended: nothing refers to
  // them any more. May be nullptr: they are found at the node's next start.
  std::vector<GlobalAddress>* evicted = nullptr;
  // Registered memory of the caller's, used for a few writes; nullptr: some of its own is used.
  VerbArena* arena = nullptr;
  // Where a row that has none gets a block for its old versions; nullptr: it loses them.
  BlockPool* blocks = nullptr;
  // Of every node; needed where versions are kept.
  uint64_t region_bytes = 0;
  // What else the transaction holds, given back in the round of its last writes. Not where verbs
  // are carried out in place, and not guarded. `release_begun` is set before that round is posted.
  std::span<const Held> also_released = {};
  bool* release_begun = nullptr;
};

// Where a transaction's Commit stage runs. What may be repeated takes no memory of the transaction.
inline InstallOptions install_options(const StageContext& context,
                                      std::vector<GlobalAddress>* evicted, bool guarded = false) {
  InstallOptions options{context.rules.effects, guarded, /*underway=*/true, evicted};
  options.arena = guarded ? nullptr : &context.arena;
  options.blocks = &context.engine.blocks;
  options.region_bytes = context.engine.layout.region_bytes;
  return options;
}

// Installs the record's writes and unlocks their headers: tuples first, then gap headers, the
// effects on each header in one chain.
Status install(Worker& worker, const LogRecord& record, const InstallOptions& options,
               VerbCounters& counters);

// Do all places that the write names lie within its node's region, and does its record fit? What
// comes from a peer or out of a log is asked first.
bool may_install(const Write& write, const RegionLayout& layout);

// For resolution: guarded install of a dead coordinator's record.
using RulesOf = const ProtocolRules* (*)(Protocol, LockMode);
InstallCommitted make_installer(Worker& worker, const Topology& topology, RulesOf rules_of);

}  // namespace rdmacc
