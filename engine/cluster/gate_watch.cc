#include "engine/cluster/gate_watch.h"

namespace rdmacc {

namespace {

bool unchanged(const WorkerLine& before, const WorkerLine& now) {
  return now.inside == 0 && before.last_ctts == now.last_ctts &&
         before.incarnation == now.incarnation && before.waiting_since_us == now.waiting_since_us;
}

}  // namespace

Status GateWatch::begin(Gate& gate, VerbCounters& counters) {
  CHECK(!begun());
  if (!gate.has_one_inside()) return Status();
  entries_ = gate.entries();
  RDMACC_RETURN_IF_ERROR(gate.snapshot(nullptr, &lines_, counters));
  for (size_t worker = 0; worker < lines_.size(); worker++) {
    if (worker != gate.worker() && lines_[worker].inside != 0) return Status();
  }
  gate_ = &gate;
  return Status();
}

bool GateWatch::still_alone(VerbCounters& counters) {
  if (!begun()) return false;
  std::vector<WorkerLine> now;
  if (!gate_->snapshot(nullptr, &now, counters).ok() || now.size() != lines_.size()) return false;
  if (!gate_->has_one_inside() || gate_->entries() != entries_) return false;
  if (now[gate_->worker()].inside == 0) return false;  // node 0 has lost its lines
  for (size_t worker = 0; worker < now.size(); worker++) {
    if (worker != gate_->worker() && !unchanged(lines_[worker], now[worker])) return false;
  }
  return true;
}

}  // namespace rdmacc
