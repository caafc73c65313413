#include "engine/report/report_program.h"

int main(int argc, char** argv) { return rdmacc::report_program(argc, argv); }
