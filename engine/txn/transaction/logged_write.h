#pragma once
#include <string_view>

#include "engine/api/plain_data.h"

namespace rdmacc {

// A row as it is once its transaction has committed, or a key that has none then: for a log that
// knows rows by their keys.
struct LoggedWrite {
  TableId table = kNoTable;
  bool deleted = false;
  std::string_view key;
  std::string_view row;
};

}  // namespace rdmacc
