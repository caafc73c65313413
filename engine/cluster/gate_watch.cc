#include "engine/cluster/gate_watch.h"

namespace rdmacc {

namespace {

bool unchanged(const WorkerLine& before, const WorkerLine& now) {
  return now.inside == 0 && before.last_ctts == now.last_ctts &&
         before.incarnation == now.incarnation && before.waiting_since_us == now.waiting_since_us;
}

}  // namespace

// Of each line `inside` is read last: a later ctts than the line says is that of a transaction
// which enters after this.
void GateWatch::begin(Gate& gate, VerbCounters& counters) {
  CHECK(!begun());
  if (!gate.has_one_inside()) return;
  entries_ = gate.entries();
  if (!gate.snapshot(nullptr, &lines_, counters, WordOrder::kDescending).ok()) return;
  for (size_t worker = 0; worker < lines_.size(); worker++) {
    if (worker != gate.worker() && lines_[worker].inside != 0) return;
  }
  gate_ = &gate;
}

// And first: a transaction that has left before has told its ctts, and a cleared line its mark.
bool GateWatch::still_alone(VerbCounters& counters) {
  if (!begun()) return false;
  std::vector<WorkerLine> now;
  const bool seen = gate_->snapshot(nullptr, &now, counters, WordOrder::kAscending).ok();
  if (!seen || now.size() != lines_.size()) return false;
  if (!gate_->has_one_inside() || gate_->entries() != entries_) return false;
  if (now[gate_->worker()].inside == 0) return false;  // node 0 has lost its lines
  for (size_t worker = 0; worker < now.size(); worker++) {
    if (worker != gate_->worker() && !unchanged(lines_[worker], now[worker])) return false;
  }
  return true;
}

}  // namespace rdmacc
