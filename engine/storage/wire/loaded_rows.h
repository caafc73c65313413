#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/storage/layout/tuple.h"
#include "rdma/rpc/rpc.h"

namespace rdmacc {

// Rows that a node puts into a table which no transaction knows of but the one that fills it: into
// its index at once, without locks and logs. After an error the table is worth nothing.
struct RowToLoad {
  std::string_view key, row;
  NodeId node = 0;  // its home; not in the message
};

struct LoadedRows {
  TableId table = kNoTable;
  uint64_t stamp = 0;         // wts of all of them
  bool check_absent = false;  // else the keys are new by their nature
};

// As a request; its rows are views of the bytes that were parsed. The reply is the number of rows
// that are in place: the first one that is not has a key that exists.
struct LoadRowsMessage {
  LoadedRows load;
  std::vector<RowToLoad> rows;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

constexpr size_t kLoadedRowHead = 8;  // of each row in a message
// Of a message; one row may be longer. Several fit into a ring, so that a node has work while its
// coordinator is about something else.
constexpr size_t kLoadBytesMax = 24 * 1024;

}  // namespace rdmacc
