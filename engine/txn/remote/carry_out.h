#pragma once
#include <span>

#include "engine/log/log_ring.h"
#include "engine/txn/stages/find.h"
#include "engine/txn/stages/install.h"
#include "engine/txn/stages/lock.h"
#include "engine/txn/stages/scan_groups.h"

// The one place that knows primitives: carries a stage out by verbs over the wire (one_sided) or
// by asking the owner to do the same with verbs to itself (rpc, stage_server.h). What the stage
// does is the same code either way; stage_message.h carries its arguments and results.

namespace rdmacc {

Status carry_out_find(StageContext& context, StagePlan plan, std::span<KeyWork> keys);
// Whether carry_out_find() begins with look_first() here. By rpc its owner does.
bool begins_with_first_look(const ProtocolRules& rules, StagePlan plan);
Status carry_out_scan(StageContext& context, StagePlan plan, std::span<ScanWork> groups);
Status carry_out_lock(StageContext& context, StagePlan plan, std::span<LockWork> works);
Status carry_out_validate(StageContext& context, StagePlan plan, std::span<Access*> accesses);
// Verbs that validate are carried out in place, and here.
bool validates_in_place(const StageContext& context, StagePlan plan);
// After an rpc whose node died the same bytes are written one-sided: the entry is whole or it is
// not, whichever process wrote it.
Status carry_out_log(StageContext& context, StagePlan plan, std::span<LogPlacement> placements);
// Log, Commit and Release in one request: for a transaction with all that it writes, and its only
// log, on one node, if all three stages are by rpc. `record` is what `placements` log.
bool ends_at_owner(StagePlan plan, std::span<const LogPlacement> placements,
                   const LogRecord& record);
// So many of the locks that only have to be released go along; they are exclusive, and on the node.
constexpr size_t kEndHeldMax = 64;
struct EndAtOwner {
  // Not ok: nothing was installed, unless the reason is kNodeRestarted: then the owner has done all
  // of it, a part, or nothing, and what decides is whether the log can be written.
  Status logged;
  bool installed = false;  // false: to be done guarded
  bool released = false;   // likewise
};
EndAtOwner carry_out_end(StageContext& context, const LogPlacement& placement,
                         std::span<const Held> held, std::vector<GlobalAddress>& evicted);
// Past the commit point nothing may stop: a node that dies under the request is finished
// one-sided, guarded by the locks. `evicted`: see InstallOptions.
Status carry_out_commit(StageContext& context, StagePlan plan, const LogRecord& record,
                        std::vector<GlobalAddress>& evicted);
// Commit and Release are posted one-sided: one round has both.
bool releases_with_commit(const StageContext& context, StagePlan plan);
// That round: so many of the locks that only have to be released go along. Not ok: some of it is
// done, or nothing; of the release nothing unless `release_begun`.
constexpr size_t kCommitHeldMax = 256;
Status carry_out_commit_and_release(StageContext& context, const LogRecord& record,
                                    std::span<const Held> held, std::vector<GlobalAddress>& evicted,
                                    bool& release_begun);
// The locks may be given back with verbs in place.
bool releases_in_place(const StageContext& context, StagePlan plan);
// Not ok when reader counts may still include this attempt.
Status carry_out_release(StageContext& context, StagePlan plan, std::span<const Held> held);
// Asks every node to release whatever still holds this attempt's ctts: for an attempt that does
// not know what it has locked, because a node died under its request.
Status release_everywhere(StageContext& context);

}  // namespace rdmacc
