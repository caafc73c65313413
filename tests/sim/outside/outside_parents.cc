#include "tests/sim/outside/outside_parents.h"

#include <map>
#include <optional>

#include "engine/index/index_scan.h"
#include "engine/index/ordered_index.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint32_t kFirstTableNumber = 81;
constexpr uint32_t kRecordSize = 40;
constexpr uint32_t kDeletePercent = 40, kLookBeforePercent = 40;
constexpr uint64_t kOfDefinitions = 12;  // one transaction of so many
constexpr uint64_t kPauseUsMax = 200;
// A lock may be a session's that has ended its last transaction.
constexpr int kLooksMax = 20;
constexpr uint64_t kLookUs = 50;

using LeftOut = OutsideParentsOptions::LeftOut;

std::string row_of(uint64_t parent, uint64_t life) {
  return std::to_string(parent) + " " + std::to_string(life);
}

std::string prefix_of(uint64_t parent) { return std::to_string(parent) + "/"; }
std::string entry_of(uint64_t parent, uint64_t child) {
  return prefix_of(parent) + std::to_string(child);
}

}  // namespace

std::vector<TableSpec> OutsideParents::table_specs() const {
  return {native_table(kFirstTableNumber, kRecordSize, options_.history),
          native_table(kFirstTableNumber + 1, kIndexRecordSize, options_.history)};
}

// No child is there at first. Parents begin anew with the tables.
Status OutsideParents::load(Session&, const TxnOptions&, uint64_t part, uint64_t) {
  if (part != 0) return Status();
  parents_.assign(options_.parents, Parent{});
  writing_ = Lock{};
  return Status();
}

TxnInputs OutsideParents::draw(Random& random) const {
  TxnInputs inputs;
  inputs.kind = random.percent(kDeletePercent) ? kDelete : kChange;
  inputs.add(random.next());
  if (inputs.values[0] % kOfDefinitions == 0) inputs.kind = kDefine;
  return inputs;
}

Status OutsideParents::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  Random random(inputs.values[0]);
  release(session);
  if (inputs.kind == kDefine) return define(session, random, effect);
  return inputs.kind == kDelete ? remove_parent(session, random) : change(session, random, effect);
}

// ---- Locks

void OutsideParents::release(const Session& session) const {
  const auto give_back = [&session](Lock& lock) {
    if (lock.exclusive.session == &session) lock.exclusive = {};
    lock.sharers.erase(&session);
  };
  for (Parent& parent : parents_) give_back(parent.lock);
  give_back(writing_);
}

void OutsideParents::release_all_of(const Scheduler& coordinator) {
  const auto give_back = [&coordinator](Lock& lock) {
    if (lock.exclusive.coordinator == &coordinator) lock.exclusive = {};
    std::erase_if(lock.sharers, [&](const auto& held) { return held.second == &coordinator; });
  };
  for (Parent& parent : parents_) give_back(parent.lock);
  give_back(writing_);
}

// False: it cannot be had soon.
bool OutsideParents::take(Session& session, Lock& lock, bool exclusive) const {
  struct Waits {
    explicit Waits(uint32_t* in) : count(in) { ++*count; }
    ~Waits() { --*count; }  // also of a session that dies here
    uint32_t* const count;
  };
  std::optional<Waits> waits;
  if (exclusive) waits.emplace(&lock.waiting);
  bool taken = false;
  for (int look = 0; look < kLooksMax && !taken; ++look) {
    if (look > 0) session.scheduler().sleep_for(kLookUs);
    const bool others = exclusive ? lock.sharers.size() > lock.sharers.count(&session)
                                  : lock.waiting > 0 && !lock.sharers.contains(&session);
    const Session* holder = lock.exclusive.session;
    taken = !others && (holder == nullptr || holder == &session);
  }
  if (taken && exclusive) lock.exclusive = {&session, &session.scheduler()};
  if (taken && !exclusive) lock.sharers.emplace(&session, &session.scheduler());
  return taken;
}

// ---- Children

Status OutsideParents::read(Session& session, uint64_t number, Child& child) const {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(kRows), key(number), view));
  child.there = view.found;
  if (!view.found) return Status();
  const std::string row(view.row);
  char* behind = nullptr;
  child.parent = std::strtoull(row.c_str(), &behind, 10);
  child.life = std::strtoull(behind, nullptr, 10);
  return Status();
}

// The row and its entry, as they are to be.
Status OutsideParents::move(Session& session, uint64_t number, const Child& from,
                            const Child& to) const {
  OrderedIndex index(session, IndexRef{table(kIndex)});
  const std::string row = row_of(to.parent, to.life);
  RDMACC_RETURN_IF_ERROR(!to.there    ? session.remove(table(kRows), key(number))
                         : from.there ? session.put(table(kRows), key(number), row)
                                      : session.insert(table(kRows), key(number), row));
  if (from.there) {
    const Status status = index.remove(entry_of(from.parent, number));
    if (status.code() == Code::kNotFound) return session.abort_on_conflict();
    RDMACC_RETURN_IF_ERROR(status);
  }
  if (!to.there) return Status();
  const Status status = index.insert(entry_of(to.parent, number));
  return status.code() == Code::kDuplicateKey ? session.abort_on_conflict() : status;
}

// A child comes, goes to another parent, or is removed. The parent is looked at before the row is
// written, or after that, as a check at the end of a statement does.
Status OutsideParents::change(Session& session, Random& random, TxnEffect& effect) const {
  if (!take(session, writing_, false)) return Status();
  const uint64_t number = random.below(options_.children);
  Child from;
  RDMACC_RETURN_IF_ERROR(read(session, number, from));
  if (from.there && random.percent(40)) return move(session, number, from, Child{});
  Child to{.there = true, .parent = random.below(options_.parents), .life = 0};
  Parent& parent = parents_[to.parent];
  const bool checks_first = random.percent(50);
  if (checks_first && (!take(session, parent.lock, false) || !parent.alive)) return Status();
  to.life = parent.life;
  RDMACC_RETURN_IF_ERROR(move(session, number, from, to));
  session.scheduler().sleep_for(random.below(kPauseUsMax));
  effect.rollback = !checks_first &&
                    (!take(session, parent.lock, false) || !parent.alive || parent.life != to.life);
  births_ += effect.rollback ? 0 : 1;
  return Status();
}

Status OutsideParents::search(Session& session, uint64_t parent, Random& random,
                              bool& found) const {
  found = false;
  const std::string prefix = std::to_string(parent) + " ";
  switch (random.below(3)) {
    case 0:
      return for_each_row(session, table(kRows), [&](const RowView& row) {
        found = found || row.row.starts_with(prefix);
        return Status();
      });
    case 1:
      for (uint64_t number = 0; number < options_.children && !found; ++number) {
        Child child;
        RDMACC_RETURN_IF_ERROR(read(session, number, child));
        found = child.there && child.parent == parent;
      }
      return Status();
    default: {
      IndexScan cursor;
      const std::string low = prefix_of(parent);
      cursor.seek(IndexRef{table(kIndex)}, IndexRange{low, low + "~", true, true}, false);
      std::vector<std::string_view> batch;
      RDMACC_RETURN_IF_ERROR(cursor.next(session, batch));
      found = !batch.empty();
      return Status();
    }
  }
}

// It has perhaps looked at the children before it had the lock: what it knows from there may be
// old.
Status OutsideParents::remove_parent(Session& session, Random& random) const {
  const uint64_t number = random.below(options_.parents);
  Parent& parent = parents_[number];
  bool found = false;
  if (random.percent(kLookBeforePercent)) {
    RDMACC_RETURN_IF_ERROR(search(session, number, random, found));
    session.scheduler().sleep_for(random.below(kPauseUsMax));
  }
  if (!take(session, parent.lock, true)) return Status();
  if (!parent.alive) {
    parent.alive = true;
    parent.life++;
    return Status();
  }
  if (options_.leaves_out != LeftOut::kNeed) session.need_current_reads();
  RDMACC_RETURN_IF_ERROR(search(session, number, random, found));
  if (found) return Status();
  if (options_.leaves_out != LeftOut::kCheck) RDMACC_RETURN_IF_ERROR(session.check_reads());
  parent.alive = false;
  deaths_++;
  return Status();
}

// The rows by a quiet scan and by a serializable one, in either order.
Status OutsideParents::define(Session& session, Random& random, TxnEffect& effect) const {
  if (options_.leaves_out != LeftOut::kLock && !take(session, writing_, true)) return Status();
  session.need_current_reads();
  std::map<std::string, std::string> seen[2];
  const bool quiet_first = random.percent(50);
  for (const bool second : {false, true}) {
    const ScanMode mode = second == quiet_first ? ScanMode::kSerializable : ScanMode::kQuiet;
    auto cursor = session.scan(table(kRows), kEveryCommand, mode);
    if (!cursor.ok()) return cursor.status();
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
      for (const RowView& row : batch) seen[second].emplace(row.key, row.row);
    } while (!batch.empty());
    session.scheduler().sleep_for(random.below(kPauseUsMax));
  }
  RDMACC_RETURN_IF_ERROR(session.check_reads());
  definitions_++;
  if (seen[0] != seen[1]) effect.doubt = "a quiet scan has other rows than a serializable one";
  return Status();
}

// ---- At rest

Status OutsideParents::check(Session& session, const TxnOptions& options, int64_t,
                             std::string& violation) const {
  violation.clear();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  for (uint64_t number = 0; number < options_.children && violation.empty(); ++number) {
    Child child;
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, read(session, number, child)));
    if (!child.there) continue;
    const Parent& parent = parents_.at(child.parent);
    if (parent.alive && parent.life == child.life) continue;
    violation =
        "child " + std::to_string(number) + " has no parent " + row_of(child.parent, child.life);
  }
  return abort_unless_ok(session, session.commit());
}

}  // namespace rdmacc
