// TPC-C's payment (clause 2.5): a customer, found by number or by last name, pays an amount that
// the district and its warehouse take.
#include <algorithm>
#include <cstdio>

#include "engine/workloads/tpcc.h"
#include "engine/workloads/tpcc_customer.h"
#include "engine/workloads/tpcc_random.h"

namespace rdmacc {
namespace {

using tpcc::DistrictId;
using tpcc::row_of;

constexpr uint32_t kValues = 8;
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
  uint64_t named() const { return inputs_.values[4]; }
  int64_t amount() const { return static_cast<int64_t>(inputs_.values[5]); }
  uint64_t date() const { return inputs_.values[6]; }
  uint64_t history() const { return inputs_.values[7]; }

 private:
  const TxnInputs& inputs_;
};

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
  const uint64_t home = random.between(1, options_.warehouses);
  const uint64_t district = random.between(1, tpcc::kDistricts);
  const uint64_t payer =
      random.percent(options_.remote_payment_percent) ? other_warehouse(random, home) : home;
  inputs.add(home);
  inputs.add(district);
  inputs.add(payer);
  inputs.add(payer == home ? district : random.between(1, tpcc::kDistricts));
  inputs.add(tpcc::draw_named(random, options_.by_last_name_percent, options_.customers));
  inputs.add(random.between(kAmountMin, kAmountMax));
  inputs.add(tpcc::draw_date(random));
  inputs.add(tpcc::history_number(random));
  return inputs;
}

Status Tpcc::payment(Session& session, const TxnInputs& drawn) const {
  const PaymentInputs inputs(drawn);
  const DistrictId of = inputs.district(), payer = inputs.customers_district();
  uint64_t id = 0;
  RDMACC_RETURN_IF_ERROR(
      tpcc::find_named(session, table(tpcc::kCustomerByLast), payer, inputs.named(), id));
  RowView view;
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
  if (tpcc::is_by_last(inputs.named())) return false;
  declare_payment_of(drawn, inputs.named(), keys);
  return true;
}

// Which customer a last name means is looked up first; at the payment's place in the order it is
// looked up again.
Status Tpcc::survey_payment(Session& session, const TxnInputs& drawn, KeyDeclaration& keys) const {
  const PaymentInputs inputs(drawn);
  const DistrictId payer = inputs.customers_district();
  const TableId by_last = table(tpcc::kCustomerByLast);
  uint64_t customer = 0;
  RDMACC_RETURN_IF_ERROR(tpcc::find_named(session, by_last, payer, inputs.named(), customer));
  keys.add(by_last, tpcc::named_key(payer, inputs.named()), KeyUse::kRead);
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
