#include "engine/bench/measure/measures.h"

namespace rdmacc {

void Measures::merge(const Measures& other) {
  effective.merge(other.effective);
  spread.merge(other.spread);
  lag_ns.merge(other.lag_ns);
  skipped += other.skipped;
  late += other.late;
  processor_ns += other.processor_ns;
  coordinator_ns += other.coordinator_ns;
}

}  // namespace rdmacc
