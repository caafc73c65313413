#pragma once
#include "engine/workloads/registry.h"

namespace rdmacc {

// rdmacc_bench: native benchmarks, of the workloads that the registry has. Exit code 0: ran and the
// invariant held; 1: it did not, or the run failed; 2: the command line is wrong or asks for what
// cannot be; 130: interrupted.
int bench_program(int argc, char** argv);

}  // namespace rdmacc
