#include "tests/workloads/test_workloads.h"

#include <array>

#include "tests/workloads/indexed.h"
#include "tests/workloads/mixed.h"
#include "tests/workloads/predicate.h"

namespace rdmacc {
namespace {

constexpr std::array<const WorkloadKind*, 3> kKinds = {&kMixedKind, &kPredicateKind, &kIndexedKind};

}  // namespace

bool add_test_workloads() {
  add_workload_kinds(kKinds);
  return true;
}

}  // namespace rdmacc
