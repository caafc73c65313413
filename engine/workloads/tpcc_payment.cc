// TPC-C's payment (clause 2.5): a customer, found by number or by last name, pays an amount that
// the district and its warehouse take.
#include <algorithm>
#include <cstdio>

#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::row_of;

constexpr uint32_t kValues = 8;
constexpr uint64_t kByLastBit = 1ull << 63;  // the customer's value is the number of a last name
constexpr uint64_t kDatesMax = 1ull << 40;
constexpr uint64_t kAmountMin = 100, kAmountMax = 500'000;  // cents
constexpr std::string_view kBadCredit = "BC";

// The inputs, read back.
class PaymentInputs {
 public:
  explicit PaymentInputs(const TxnInputs& inputs) : inputs_(inputs) {
    CHECK(inputs.count == kValues);
  }
  DistrictId district() const { return {inputs_.values[0], inputs_.values[1]}; }
  DistrictId customers_district() const { return {inputs_.values[2], inputs_.values[3]}; }
  bool by_last() const { return (inputs_.values[4] & kByLastBit) != 0; }
  uint64_t customer_or_name() const { return inputs_.values[4] & ~kByLastBit; }
  int64_t amount() const { return static_cast<int64_t>(inputs_.values[5]); }
  uint64_t date() const { return inputs_.values[6]; }
  uint64_t history() const { return inputs_.values[7]; }

 private:
  const TxnInputs& inputs_;
};

// Clause 2.5.2.2: the one in the middle of those with the name, sorted by first name, rounded up.
Status customer_in_the_middle(const RowView& row, uint64_t& customer) {
  const size_t count = row.row.size() / sizeof(uint16_t);
  if (!row.found || count == 0) return Status(Code::kCorrupt, "no customer has a listed last name");
  uint16_t id = 0;
  std::memcpy(&id, row.row.data() + (count - 1) / 2 * sizeof(id), sizeof(id));
  customer = id;
  return Status();
}

// What a customer with bad credit is reminded of, before the older reminders.
std::string remind(const PaymentInputs& inputs, uint64_t customer, std::string_view older) {
  const DistrictId payer = inputs.customers_district(), taker = inputs.district();
  char text[160];
  std::snprintf(
      text, sizeof(text), "%llu %llu %llu %llu %llu %lld|",
      static_cast<unsigned long long>(customer), static_cast<unsigned long long>(payer.district),
      static_cast<unsigned long long>(payer.warehouse),
      static_cast<unsigned long long>(taker.district),
      static_cast<unsigned long long>(taker.warehouse), static_cast<long long>(inputs.amount()));
  std::string all = text;
  all += older;
  if (all.size() > tpcc::kCustomerDataMax) all.resize(tpcc::kCustomerDataMax);
  return all;
}

tpcc::HistoryRow history_row(const PaymentInputs& inputs, uint64_t customer,
                             const tpcc::WarehouseRow& warehouse,
                             const tpcc::DistrictRow& district) {
  tpcc::HistoryRow row;
  row.date = inputs.date();
  row.amount = inputs.amount();
  row.customer = static_cast<uint32_t>(customer);
  row.customer_district = static_cast<uint32_t>(inputs.customers_district().district);
  row.customer_warehouse = static_cast<uint32_t>(inputs.customers_district().warehouse);
  row.district = static_cast<uint32_t>(inputs.district().district);
  row.warehouse = static_cast<uint32_t>(inputs.district().warehouse);
  // The two names with four blanks between them.
  row.text.fill(' ');
  std::copy(warehouse.name.begin(), warehouse.name.end(), row.text.begin());
  std::copy(district.name.begin(), district.name.end(), row.text.begin() + 14);
  return row;
}

}  // namespace

TxnInputs Tpcc::draw_payment(Random& random) const {
  TxnInputs inputs;
  inputs.kind = kPaymentKind;
  const uint64_t home = tpcc::between(random, 1, options_.warehouses);
  const uint64_t district = tpcc::between(random, 1, tpcc::kDistricts);
  const uint64_t payer =
      random.percent(options_.remote_payment_percent) ? other_warehouse(random, home) : home;
  inputs.add(home);
  inputs.add(district);
  inputs.add(payer);
  inputs.add(payer == home ? district : tpcc::between(random, 1, tpcc::kDistricts));
  inputs.add(random.percent(options_.by_last_name_percent)
                 ? kByLastBit | tpcc::draw_last_name(random, tpcc::kLastNameConstantOfRun,
                                                     options_.customers)
                 : tpcc::draw_customer(random, options_.customers));
  inputs.add(tpcc::between(random, kAmountMin, kAmountMax));
  inputs.add(1 + random.below(kDatesMax));
  inputs.add(tpcc::history_number(random));
  return inputs;
}

Status Tpcc::payment(Session& session, const TxnInputs& drawn) const {
  const PaymentInputs inputs(drawn);
  const DistrictId of = inputs.district(), payer = inputs.customers_district();
  uint64_t id = inputs.customer_or_name();
  RowView view;
  if (inputs.by_last()) {
    RDMACC_RETURN_IF_ERROR(
        session.get(table(tpcc::kCustomerByLast), tpcc::by_last_key(payer, id), view));
    RDMACC_RETURN_IF_ERROR(customer_in_the_middle(view, id));
  }
  const NumberKey customer_key = tpcc::customer_key(payer, id);
  tpcc::CustomerRow customer;
  RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kCustomer), customer_key, view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a customer", customer));
  customer.balance -= inputs.amount();
  customer.ytd_payment += inputs.amount();
  ++customer.payments;
  RDMACC_RETURN_IF_ERROR(
      session.put(table(tpcc::kCustomer), customer_key, tpcc::bytes_of(customer)));
  if (std::string_view(customer.credit.data(), customer.credit.size()) == kBadCredit) {
    RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kCustomerData), customer_key, view));
    if (!view.found) return Status(Code::kCorrupt, "a customer's data are missing");
    RDMACC_RETURN_IF_ERROR(
        session.put(table(tpcc::kCustomerData), customer_key, remind(inputs, id, view.row)));
  }
  // The rows that all payments of a warehouse change come last.
  session.meet_hot_rows();
  const NumberKey district_key = tpcc::district_key(of);
  tpcc::DistrictRow district;
  RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kDistrict), district_key, view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a district", district));
  district.ytd += inputs.amount();
  RDMACC_RETURN_IF_ERROR(
      session.put(table(tpcc::kDistrict), district_key, tpcc::bytes_of(district)));
  const NumberKey warehouse_key = tpcc::warehouse_key(of.warehouse);
  tpcc::WarehouseRow warehouse;
  RDMACC_RETURN_IF_ERROR(session.get(table(tpcc::kWarehouse), warehouse_key, view));
  RDMACC_RETURN_IF_ERROR(row_of(view, "a warehouse", warehouse));
  warehouse.ytd += inputs.amount();
  RDMACC_RETURN_IF_ERROR(
      session.put(table(tpcc::kWarehouse), warehouse_key, tpcc::bytes_of(warehouse)));
  return session.insert_unchecked(table(tpcc::kHistory), tpcc::history_key(inputs.history()),
                                  tpcc::bytes_of(history_row(inputs, id, warehouse, district)));
}

bool Tpcc::knows_payment(const TxnInputs& inputs) const { return inputs.count == kValues; }

bool Tpcc::declare_payment(const TxnInputs& drawn, KeyDeclaration& keys) const {
  const PaymentInputs inputs(drawn);
  if (inputs.by_last()) return false;
  declare_payment_of(drawn, inputs.customer_or_name(), keys);
  return true;
}

// Which customer a last name means is looked up first; at the payment's place in the order it is
// looked up again.
Status Tpcc::survey(Session& session, const TxnOptions& options, const TxnInputs& drawn,
                    KeyDeclaration& keys, bool& known) const {
  known = drawn.kind == kPaymentKind;
  if (!known) return Status();
  const PaymentInputs inputs(drawn);
  const NumberKey name = tpcc::by_last_key(inputs.customers_district(), inputs.customer_or_name());
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RowView view;
  uint64_t customer = 0;
  Status status = session.get(table(tpcc::kCustomerByLast), name, view);
  if (status.ok()) status = customer_in_the_middle(view, customer);
  session.abort();
  RDMACC_RETURN_IF_ERROR(status);
  keys.add(table(tpcc::kCustomerByLast), name, KeyUse::kRead);
  declare_payment_of(drawn, customer, keys);
  return Status();
}

void Tpcc::declare_payment_of(const TxnInputs& drawn, uint64_t customer_id,
                              KeyDeclaration& keys) const {
  const PaymentInputs inputs(drawn);
  const DistrictId of = inputs.district();
  const NumberKey customer = tpcc::customer_key(inputs.customers_district(), customer_id);
  keys.add(table(tpcc::kWarehouse), tpcc::warehouse_key(of.warehouse), KeyUse::kWrite);
  keys.add(table(tpcc::kDistrict), tpcc::district_key(of), KeyUse::kWrite);
  keys.add(table(tpcc::kCustomer), customer, KeyUse::kWrite);
  keys.add(table(tpcc::kCustomerData), customer, KeyUse::kWrite);
  keys.add(table(tpcc::kHistory), tpcc::history_key(inputs.history()), KeyUse::kInsert);
}

}  // namespace rdmacc
