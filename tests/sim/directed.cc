#include "tests/sim/directed.h"

#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

constexpr uint32_t kLostNodes = 10, kDeadCoordinators = 6;
constexpr uint32_t kHotKeys = 5;
// Runs that move much take millions of events.
constexpr uint64_t kLongWindowEvents = 500'000;
// A coordinator may wait for seconds until what a lost request has locked is settled.
constexpr uint64_t kEventsMax = 150'000'000;
// All rows of a run in one transaction.
constexpr uint32_t kRowsAtOnce = 1'500;
constexpr uint32_t kFillersPercent = 15;
constexpr uint32_t kScanPercent = 25;
constexpr uint64_t kSlowWriteNs = 8'000;
// Twice as long as a node takes to free what a worker that is gone had allocated.
constexpr uint64_t kRestUs = 4'000'000;
constexpr uint32_t kRestPercent = 30;
constexpr uint32_t kLostUnderDrops = 8;
// Of all events: a request then often comes when its caller, which is dead, has been resolved.
constexpr uint32_t kLatePercent = 8;
constexpr uint32_t kCutShort = 40;
// Longer than a commit is tried again for.
constexpr uint64_t kAwayUsMin = 61'000'000, kAwayUsMax = 70'000'000;
// So that most transactions are still to come when the node is back.
constexpr uint64_t kAwayUsShort = 400;
constexpr uint32_t kLeaseTransactions = 40;
constexpr uint32_t kCancelPercent = 40;

// Nodes die again and again under the requests of many transactions on few rows: what a lost
// request has locked, allocated or installed is looked for, and done once more.
void lose_nodes(SimScenario& scenario, Random& random) {
  scenario.load = random.percent(50) ? SimScenario::Load::kDoor : SimScenario::Load::kMixed;
  if (random.percent(75)) scenario.code = 0;  // all stages by RPC
  scenario.keys = kHotKeys;
  scenario.node_restarts = kLostNodes;
  scenario.coordinators = 4;
  scenario.coroutines = 3;
  scenario.transactions = 20;
  scenario.aimed = random.percent(40);
  scenario.long_rows = random.percent(50);
  if (random.percent(50)) scenario.away_us_max = kAwayUsShort;
  if (random.percent(60)) scenario.fault_window_events = kLongWindowEvents;
}

// Transactions in doubt keep what they have allocated while nodes come and go.
void lose_nodes_in_doubt(SimScenario& scenario, Random& random) {
  lose_nodes(scenario, random);
  scenario.long_rows = false;
  scenario.prepared = !executes_procedures(scenario.protocol);
  scenario.kills = 2;
}

// Coordinators die when they have logged what takes several segments.
void die_after_long_records(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kDoor;
  scenario.long_rows = true;
  scenario.aimed = true;
  scenario.kills = kDeadCoordinators;
  scenario.coordinators = kDeadCoordinators + 2;
  scenario.transactions = 20;
  scenario.coroutines = 1 + static_cast<uint32_t>(random.below(2));
}

SimDelays slow(uint8_t kinds, uint8_t initiators, uint64_t ns_max) {
  SimDelays delays;
  delays.kinds = kinds;
  delays.initiators = initiators;
  delays.ns_min = ns_max / 4;
  delays.ns_max = ns_max;
  return delays;
}

// Coordinators die while nodes still serve their requests, of which each takes long.
void die_under_requests(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kDoor;
  scenario.code = 0;  // all stages by RPC
  scenario.late = true;
  if (random.percent(50)) scenario.stall_percent = kLatePercent;
  scenario.delays = random.percent(50)
                        ? slow(SimDelays::kAtomics, SimDelays::kOfNodes, SimDelays::kNsMax)
                        : SimDelays::draw(random);
  scenario.kills = kDeadCoordinators;
  scenario.fault_window_events = kLongWindowEvents;
  scenario.coordinators = kDeadCoordinators + 2;
  scenario.coroutines = 2;
  scenario.transactions = 20;
  // What is done for dead coordinators is cut short then, and done once more.
  if (random.percent(30)) scenario.node_restarts = kLostNodes;
}

// Requests for memory that are undone; what is left is what the nodes open again.
void fill_memory(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kDoor;
  scenario.tight = !executes_procedures(scenario.protocol);
  scenario.restarts_after = true;
  scenario.coordinators = 3;
  scenario.coroutines = 1 + static_cast<uint32_t>(random.below(3));
  scenario.transactions = 20;
}

// Few rows, written all the time, and READs of one batch that are far apart: whether the bytes
// belong to the stamps around them.
void read_beside_writes(SimScenario& scenario, Random& random) {
  scenario.load = random.percent(30)   ? SimScenario::Load::kBank
                  : random.percent(40) ? SimScenario::Load::kDoor
                                       : SimScenario::Load::kMixed;
  if (random.percent(75)) scenario.code = stages_of(scenario.protocol);  // all one-sided
  scenario.keys = kHotKeys;
  scenario.coordinators = 4;
  scenario.coroutines = 3;
  scenario.transactions = 30;
  scenario.cpu_moves = random.percent(50);
  scenario.delays = random.percent(50) ? SimDelays::between_reads(random) : SimDelays::draw(random);
  scenario.one_by_one = random.percent(40);
  scenario.long_keys = random.percent(40);
}

// Absences that were read before a split, and rows whose logical time is far behind the group's:
// few of those that add a row add others beside it.
void split_under_leases(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kHeads;
  scenario.fillers_percent = kFillersPercent;
  scenario.coordinators = 4;
  scenario.coroutines = 3;
  scenario.transactions = kLeaseTransactions;
  if (random.percent(30)) scenario.delays = SimDelays::draw(random);
}

// The user cancels while a transaction waits for a lock, and has others, or reads several keys.
void cancel_under_waits(SimScenario& scenario, Random& random) {
  scenario.load = random.percent(60) ? SimScenario::Load::kHeads : SimScenario::Load::kDoor;
  scenario.cancel_percent = kCancelPercent;
  scenario.coordinators = 4;
  scenario.coroutines = 3;
  scenario.transactions = kLeaseTransactions;
  if (random.percent(50)) scenario.delays = SimDelays::draw(random);
}

// Scans beside splits that take as long as the walk along a chain. Under MVCC locks of a later time
// do not keep readers from a group.
void scan_beside_splits(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kDoor;
  scenario.scan_percent = kScanPercent;
  scenario.coordinators = 3;
  scenario.coroutines = 2;
  scenario.transactions = 10;
  scenario.read_only_percent = 20;
  scenario.delays = slow(SimDelays::kReads | SimDelays::kWrites,
                         SimDelays::kOfCoordinators | SimDelays::kOfNodes, kSlowWriteNs);
  scenario.one_by_one = random.percent(30);
  // Or the group is split between the READs of its buckets and of what is chained to them.
  if (random.percent(50)) {
    scenario.delays = slow(SimDelays::kReads, SimDelays::kOfCoordinators, SimDelays::kNsMax);
  }
}

// Nodes die when a part of what installs a row has arrived: it is installed once more.
void cut_installs_short(SimScenario& scenario, Random& random) {
  scenario.load = random.percent(80) ? SimScenario::Load::kDoor : SimScenario::Load::kMixed;
  scenario.code = random.percent(60) ? stages_of(scenario.protocol) : 0;  // one-sided, or by RPC
  scenario.keys = kHotKeys;
  scenario.cut_short = kCutShort;
  scenario.coordinators = 3;
  scenario.coroutines = 2;
  scenario.transactions = 50;
  scenario.history = 1 + static_cast<uint32_t>(random.below(2));
  if (random.percent(30)) scenario.kills = 2;
  scenario.long_keys = random.percent(30);
  scenario.away_us_max = kAwayUsShort;
  // What workers have kept since before the deaths is used long after them.
  if (random.percent(kRestPercent)) scenario.rest_us = kRestUs;
}

// What was prepared is committed while a node with a copy of its log is away: that can be told its
// end neither then nor in the minute that it is tried for. Others want the rows meanwhile.
void lose_a_node_in_doubt(SimScenario& scenario, Random& random) {
  scenario.load = random.percent(50) ? SimScenario::Load::kBank : SimScenario::Load::kMixed;
  scenario.keys = kHotKeys;
  scenario.prepared = true;
  scenario.aimed = false;
  scenario.node_restarts = 0;
  scenario.in_doubt = 1;
  // One at a time, so that it is known whose outcome the session could not settle.
  scenario.coroutines = 1;
  scenario.transactions = 6;
  // They go on when the others have given up what was in doubt, and the node is back.
  scenario.rest_us = kAwayUsMax;
}

// A node stays away for longer than any transaction waits for it; what its coordinators leave is
// resolved when they die.
void lose_a_node_for_long(SimScenario& scenario, Random& random) {
  scenario.load = random.percent(60)   ? SimScenario::Load::kHeads
                  : random.percent(50) ? SimScenario::Load::kBank
                                       : SimScenario::Load::kMixed;
  scenario.prepared = !executes_procedures(scenario.protocol) && random.percent(70);
  scenario.aimed = random.percent(85);
  scenario.node_restarts = 2;
  scenario.away_us_min = kAwayUsMin;
  scenario.away_us_max = kAwayUsMax;
  scenario.die_at_end = true;
  scenario.coordinators = 3;
  scenario.coroutines = 2;
  scenario.transactions = 15;
  if (!executes_procedures(scenario.protocol) && Random(scenario.seed ^ 0xD0'0B75).percent(50)) {
    lose_a_node_in_doubt(scenario, random);
  }
}

// A table is dropped under most transactions, whose requests take long: what they have allocated
// is undone.
void drop_under_requests(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kDoor;
  scenario.visited = true;
  scenario.restarts_after = true;
  scenario.delays = SimDelays::draw(random);
  scenario.delays.initiators |= SimDelays::kOfNodes;
  scenario.delays.kinds |= SimDelays::kAtomics;
  scenario.coordinators = 4;
  scenario.coroutines = 2;
  scenario.transactions = 20;
  // A request for slots of the table that goes is one for other rows' blocks, too.
  Random apart(scenario.seed ^ 0xB10C);
  scenario.long_keys = apart.percent(40);
  scenario.long_rows = apart.percent(40);
  if (random.percent(50)) return;
  // Most drops come within an allocation then, or while a commit is repeated for a lost node.
  scenario.delays = slow(SimDelays::kAtomics, SimDelays::kOfNodes, SimDelays::kNsMax);
  if (!random.percent(70)) return;
  scenario.code = 0;  // all stages by RPC
  scenario.node_restarts = kLostUnderDrops;
  scenario.away_us_max = kAwayUsShort;
  scenario.fault_window_events = kLongWindowEvents;
}

// One transaction loads everything, alone or beside another that does so; nothing is written
// afterwards.
void load_at_once(SimScenario& scenario, Random& random) {
  scenario.load = SimScenario::Load::kLoads;
  scenario.deep_rows = 0;
  scenario.rows_at_once = kRowsAtOnce;
  scenario.coordinators = 1 + static_cast<uint32_t>(random.below(2));
  scenario.coroutines = 1;
  scenario.transactions = 1;
}

}  // namespace

SimScenario directed_scenario(const CampaignVariant& variant, uint64_t seed) {
  const std::vector<uint16_t> codes = variant.codes();
  SimScenario scenario;
  scenario.seed = seed;
  scenario.protocol = variant.protocol;
  scenario.lock_mode = variant.lock_mode;
  scenario.code = codes[seed % codes.size()];
  scenario.events_max = kEventsMax;
  Random random(seed ^ 0xD1'2EC7);
  switch (seed % kDirectedKinds) {
    case 0:
      lose_nodes(scenario, random);
      break;
    case 3:
      fill_memory(scenario, random);
      break;
    case 8:
      die_under_requests(scenario, random);
      break;
    case 1:
      lose_nodes_in_doubt(scenario, random);
      break;
    case 2:
      die_after_long_records(scenario, random);
      break;
    case 4:
      load_at_once(scenario, random);
      break;
    case 12:
      cancel_under_waits(scenario, random);
      break;
    case 6:
      split_under_leases(scenario, random);
      break;
    case 7:
    case 9:
    case 11:
      cut_installs_short(scenario, random);
      break;
    case 10:
      lose_a_node_for_long(scenario, random);
      break;
    case 13:
      scan_beside_splits(scenario, random);
      break;
    case 14:
      drop_under_requests(scenario, random);
      break;
    default:
      read_beside_writes(scenario, random);
  }
  scenario.unreachable = scenario.in_doubt > 0 || drawn_by_wire(seed);
  return scenario;
}

}  // namespace rdmacc
