#include "engine/bench/bench_program.h"

int main(int argc, char** argv) { return rdmacc::bench_program(argc, argv); }
