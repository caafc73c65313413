#pragma once

namespace rdmacc {

// rdmacc_report: makes a page of files with runs. 0: it is written; 1: it could not be; 2: wrong
// options or files. Says what is wrong in a sentence on stderr.
int report_program(int argc, const char* const* argv);

}  // namespace rdmacc
