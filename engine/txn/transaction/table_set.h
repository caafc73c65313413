#pragma once
#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "engine/api/plain_data.h"

namespace rdmacc {

// The tables that something has come to, of which the latest mostly comes again.
class TableSet {
 public:
  // True: it is new.
  bool add(TableId table) { return table != latest_ && add_another(table); }
  bool has(TableId table) const {
    return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
  }

 private:
  [[gnu::noinline]] bool add_another(TableId table) {
    latest_ = table;
    if (has(table)) return false;
    tables_.push_back(table);
    return true;
  }

  TableId latest_ = kNoTable;
  boost::container::small_vector<TableId, 8> tables_;
};

}  // namespace rdmacc
