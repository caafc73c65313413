#pragma once
#include "engine/workloads/tpcc.h"
#include "tests/unit/workloads/loaded_workload.h"

namespace rdmacc {

template <typename Row>
Row parsed(std::string_view bytes) {
  Row row;
  EXPECT_EQ(bytes.size(), sizeof(Row));
  if (bytes.size() == sizeof(Row)) std::memcpy(&row, bytes.data(), sizeof(Row));
  return row;
}

// Counts one field of a row up.
template <typename Row, typename Field>
std::function<std::string(std::string_view)> count_up(Field Row::*field) {
  return [field](std::string_view bytes) {
    Row row = parsed<Row>(bytes);
    ++(row.*field);
    return std::string(bytes_of(row));
  };
}

// TPC-C, loaded.
class LoadedTpcc : public LoadedWorkload {
 public:
  explicit LoadedTpcc(std::string_view settings, const TxnOptions& options = TxnOptions())
      : LoadedWorkload("tpcc", settings, options) {}

  const Tpcc& tpcc() { return dynamic_cast<const Tpcc&>(workload()); }

  uint32_t count(tpcc::Table number) {
    uint32_t rows = 0;
    for_each(table(number), [&rows](const RowView&) { ++rows; });
    return rows;
  }
  template <typename Row>
  Row parsed_row(tpcc::Table number, const NumberKey& key) {
    return parsed<Row>(row(table(number), key));
  }
  TxnInputs draw(Tpcc::Kind kind, Random& random) {
    TxnInputs inputs;
    do inputs = workload().draw(random);
    while (inputs.kind != kind);
    return inputs;
  }
};

}  // namespace rdmacc
