#include "tests/sim/door/door_surroundings.h"

namespace rdmacc {
namespace {

constexpr uint64_t kBetweenDropsUs = 1'500, kGoneUs = 200;
constexpr uint64_t kBetweenFillsUs = 2'000, kFullUs = 3'000, kRetryUs = 300;
constexpr uint64_t kFillerBytes = 135'000;  // takes a page
constexpr uint64_t kFillersMax = 200, kRemovedMax = 4;
constexpr uint64_t kBuriedAtATime = 8, kBetweenBurialsUs = 1'000;
constexpr uint32_t kAttempts = 20;
// Record sizes whose slots have different sizes.
constexpr uint32_t kShapes[] = {16, 64, 200, 400, 512};

// What there is to be done about it is to try again later.
bool passes(const Status& status) {
  return status.code() == Code::kAborted || status.code() == Code::kUnavailable ||
         status.code() == Code::kNoSpace || status.code() == Code::kTimeout;
}

}  // namespace

void DoorSurroundings::pause(Session& session, uint64_t us_max) {
  session.scheduler().sleep_for(1 + random_.below(us_max));
}

// A table whose drop has failed half way is found, and dropped, by its identity.
Status DoorSurroundings::drop(Session& session) {
  const TableSpec spec = Door::visited_spec(door_.history());
  Result<TableMeta> found = session.find_table(spec);
  if (found.status().code() == Code::kNotFound) return Status();
  if (!found.ok()) return found.status();
  const Status status = session.drop_table(found->id);
  if (status.ok()) ++drops_;
  return status.code() == Code::kNotFound ? Status() : status;
}

Status DoorSurroundings::make(Session& session) {
  const uint32_t size =
      other_shapes_ ? kShapes[shapes_.below(std::size(kShapes))] : kDoorRecordSize;
  Result<TableMeta> made = session.create_table(Door::visited_spec(door_.history(), size));
  if (made.ok()) door_.set_visited(made->id);
  // Node 0 has forgotten the reservation: it was restarted in between.
  if (made.status().code() == Code::kInvalidArgument) return Status();
  // An earlier request that seemed lost has made it.
  if (made.status().code() == Code::kDuplicateKey) return drop(session);
  return made.status();
}

Status DoorSurroundings::drop_again_and_again(Session& session) {
  while (!stopped_) {
    Status status = make(session);
    if (!status.ok() && !passes(status)) return status;
    pause(session, kBetweenDropsUs);
    status = drop(session);
    if (!status.ok() && !passes(status)) return status;
    // For a moment it is asked for although it is gone.
    pause(session, kGoneUs);
    if (status.ok()) door_.set_visited(kNoTable);
  }
  return Status();
}

Status DoorSurroundings::in_transaction(Session& session, const std::function<Status()>& work) {
  Status status;
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    RDMACC_RETURN_IF_ERROR(session.begin(options_));
    status = abort_unless_ok(session, work());
    if (status.ok()) status = abort_unless_ok(session, session.commit());
    if (status.ok() || status.code() != Code::kAborted) return status;
    pause(session, kRetryUs);
  }
  return status;
}

Status DoorSurroundings::put_filler(Session& session, uint64_t number) {
  const std::string key = "filler" + std::to_string(number);
  const std::string row(kFillerBytes, 'f');
  return in_transaction(session,
                        [&] { return session.insert_unchecked(door_.filler(), key, row); });
}

Status DoorSurroundings::remove_filler(Session& session, uint64_t number) {
  const std::string key = "filler" + std::to_string(number);
  return in_transaction(session, [&] {
    const Status removed = session.remove(door_.filler(), key);
    return removed.code() == Code::kNotFound ? Status() : removed;
  });
}

Status DoorSurroundings::fill_up(Session& session) {
  Status status;
  for (uint64_t i = 0; i < kFillersMax && status.ok() && !stopped_; ++i) {
    status = put_filler(session, next_filler_++);
  }
  if (status.code() == Code::kNoSpace) ++full_;
  return passes(status) ? Status() : status;
}

Status DoorSurroundings::bury(Session& session) {
  const TableId table = door_.tables()[random_.below(2)];
  const auto for_each = [&](const std::function<Status(const std::string&)>& act) {
    return in_transaction(session, [&] {
      for (uint64_t i = 0; i < kBuriedAtATime; ++i) {
        RDMACC_RETURN_IF_ERROR(act(door_.hot_key(table, 'u', next_buried_ + i)));
      }
      return Status();
    });
  };
  RDMACC_RETURN_IF_ERROR(for_each(
      [&](const std::string& key) { return session.insert_unchecked(table, key, key + ":"); }));
  pause(session, kBetweenBurialsUs);
  return for_each([&](const std::string& key) {
    const Status removed = session.remove(table, key);
    return removed.code() == Code::kNotFound ? Status() : removed;
  });
}

Status DoorSurroundings::bury_again_and_again(Session& session) {
  while (!stopped_) {
    pause(session, kBetweenBurialsUs);
    const Status status = bury(session);
    next_buried_ += kBuriedAtATime;
    if (!status.ok() && !passes(status)) return status;
  }
  return Status();
}

Status DoorSurroundings::fill_again_and_again(Session& session) {
  while (!stopped_) {
    pause(session, kFullUs);
    const uint64_t last = first_filler_ + random_.below(kRemovedMax + 1);
    for (; first_filler_ < std::min(last, next_filler_) && !stopped_; ++first_filler_) {
      const Status status = remove_filler(session, first_filler_);
      if (!status.ok() && !passes(status)) return status;
    }
    pause(session, kBetweenFillsUs);
    RDMACC_RETURN_IF_ERROR(fill_up(session));
  }
  return Status();
}

}  // namespace rdmacc
