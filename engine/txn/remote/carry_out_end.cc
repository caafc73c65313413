// The end of a transaction at its only owner, in one request (carry_out.h).
#include <algorithm>

#include "engine/txn/remote/carry_out.h"
#include "engine/txn/remote/stage_requests.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// What an owner does without letting others in between.
constexpr size_t kWritesMax = 16;

}  // namespace

bool ends_at_owner(StagePlan plan, std::span<const LogPlacement> placements,
                   const LogRecord& record) {
  for (const Stage stage : {Stage::kLog, Stage::kCommit, Stage::kRelease}) {
    if (plan.of(stage) != Primitive::kRpc) return false;
  }
  if (placements.size() != 1 || !placements.front().segments.empty()) return false;
  if (record.writes.size() > kWritesMax || !record.gtid.null()) return false;
  return std::all_of(record.writes.begin(), record.writes.end(), [&](const Write& write) {
    return write.header.node() == placements.front().node;
  });
}

EndAtOwner carry_out_end(StageContext& context, const LogPlacement& placement,
                         std::span<const Held> held, std::vector<GlobalAddress>& evicted) {
  CHECK(held.size() <= kEndHeldMax && placement.segments.empty());
  StageRequests requests(context, StageWork::kEnd);
  MessageWriter out = requests.add(placement.node, 0);
  encode_placement(placement, out);
  for (const Held& each : held) {
    CHECK(each.header.node() == placement.node && each.reader_count == 0);
    MessageWriter more = requests.add(placement.node, 1);
    write_held(more, each);
  }
  requests.send();
  EndResult result;
  EndAtOwner end;
  end.logged = requests.read(
      [&](MessageReader& in, size_t item) {
        if (item > 0) return true;
        return read_end_result(in, result) && read_evicted(in, placement.node, evicted);
      },
      [](size_t) {});
  if (!end.logged.ok()) return end;
  end.installed = result.installed;
  end.released = result.released;
  return end;
}

}  // namespace rdmacc
