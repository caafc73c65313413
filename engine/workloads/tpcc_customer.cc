#include "engine/workloads/tpcc_customer.h"

#include "engine/workloads/tpcc_random.h"

namespace rdmacc::tpcc {
namespace {

// Clause 2.5.2.2: the one in the middle of those with the name, sorted by first name, rounded up.
Status customer_in_the_middle(const RowView& row, uint64_t& customer) {
  const size_t count = row.row.size() / sizeof(uint16_t);
  if (!row.found || count == 0) return Status(Code::kCorrupt, "no customer has a listed last name");
  uint16_t id = 0;
  std::memcpy(&id, row.row.data() + (count - 1) / 2 * sizeof(id), sizeof(id));
  customer = id;
  return Status();
}

}  // namespace

uint64_t draw_named(Random& random, uint32_t by_last_percent, uint32_t customers) {
  return random.percent(by_last_percent)
             ? kByLastBit | draw_last_name(random, kLastNameConstantOfRun, customers)
             : draw_customer(random, customers);
}

Status find_named(Session& session, TableId customer_by_last, DistrictId of, uint64_t named,
                  uint64_t& customer) {
  customer = customer_or_name(named);
  if (!is_by_last(named)) return Status();
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(customer_by_last, named_key(of, named), view));
  return customer_in_the_middle(view, customer);
}

}  // namespace rdmacc::tpcc
