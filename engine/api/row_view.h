#pragma once
#include <string_view>

#include "rdma/fabric/verb.h"

namespace rdmacc {

// A row as a get or a scan saw it. The views stay valid until the transaction ends (get) or the
// next batch is asked for (scan).
struct RowView {
  bool found = false;
  std::string_view key;
  std::string_view row;
  uint64_t version = 0;  // stamp of the version read; 0 for an own write
  NodeId node = 0;       // that stores it; 0 on rows that were given beforehand
};

}  // namespace rdmacc
