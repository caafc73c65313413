// rdmacc_test_bench: rdmacc_bench that has the workloads of this folder, too.
#include "engine/bench/bench_program.h"
#include "tests/workloads/test_workloads.h"

int main(int argc, char** argv) { return rdmacc::bench_program(argc, argv); }
