// What must hold of TATP's rows: each refers to rows that are there.
#include <unordered_set>

#include "engine/workloads/tatp.h"

namespace rdmacc {
namespace {

using tatp::kForwardingHours;
using tatp::kForwardingsMax;
using tatp::kTypes;

class ReferenceCheck {
 public:
  ReferenceCheck(Session& session, std::span<const TableId> tables, uint64_t subscribers)
      : session_(session), tables_(tables), subscribers_(subscribers) {}

  // In one transaction, which its caller begins and ends.
  Status read_all() {
    RDMACC_RETURN_IF_ERROR(scan(tatp::kSubscriber, &ReferenceCheck::see_subscriber));
    RDMACC_RETURN_IF_ERROR(scan(tatp::kSubscriberByNumber, &ReferenceCheck::see_number));
    RDMACC_RETURN_IF_ERROR(scan(tatp::kAccessInfo, &ReferenceCheck::see_access));
    RDMACC_RETURN_IF_ERROR(scan(tatp::kSpecialFacility, &ReferenceCheck::see_facility));
    return scan(tatp::kCallForwarding, &ReferenceCheck::see_forwarding);
  }

  // The first violation, or nothing.
  std::string violation(int64_t delta) const {
    if (!wrong_.empty()) return wrong_;
    if (counts_[tatp::kSubscriber] != subscribers_ ||
        counts_[tatp::kSubscriberByNumber] != subscribers_) {
      return "there are " + std::to_string(counts_[tatp::kSubscriber]) + " subscribers and " +
             std::to_string(counts_[tatp::kSubscriberByNumber]) + " numbers, but " +
             std::to_string(subscribers_) + " were loaded";
    }
    int64_t loaded = 0;
    for (uint64_t s = 1; s <= subscribers_; ++s) loaded += tatp::loaded_forwardings(s);
    const auto found = static_cast<int64_t>(counts_[tatp::kCallForwarding]);
    if (found == loaded + delta) return "";
    return "there are " + std::to_string(found) + " forwardings, but " + std::to_string(loaded) +
           " were loaded and " + std::to_string(delta) + " inserted less those deleted";
  }

 private:
  using See = Status (ReferenceCheck::*)(const RowView& view, uint64_t key);

  Status scan(tatp::Table table, See see) {
    return for_each_row(session_, tables_[table], [this, table, see](const RowView& view) {
      ++counts_[table];
      const bool numbered = table != tatp::kSubscriberByNumber;
      return (this->*see)(view, numbered ? NumberKey::number_of(view.key) : 0);
    });
  }

  void expect(bool holds, const std::string& otherwise) {
    if (!holds && wrong_.empty()) wrong_ = otherwise;
  }
  bool is_subscriber(uint64_t number) const { return number >= 1 && number <= subscribers_; }

  Status see_subscriber(const RowView& view, uint64_t key) {
    tatp::SubscriberRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a subscriber", row));
    expect(is_subscriber(key), "there is a subscriber " + std::to_string(key));
    expect(row.number == tatp::digits_of(key),
           "subscriber " + std::to_string(key) + " has another's number");
    return Status();
  }

  Status see_number(const RowView& view, uint64_t /*key*/) {
    tatp::SubscriberByNumberRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a telephone number", row));
    expect(
        is_subscriber(row.subscriber) && view.key == tatp::key_of(tatp::digits_of(row.subscriber)),
        "number " + std::string(view.key) + " leads to another subscriber");
    return Status();
  }

  Status see_access(const RowView& view, uint64_t key) {
    tatp::AccessInfoRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "access", row));
    return see_typed(key, "access");
  }

  Status see_facility(const RowView& view, uint64_t key) {
    tatp::SpecialFacilityRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a facility", row));
    facilities_.insert(key);
    return see_typed(key, "a facility");
  }

  Status see_typed(uint64_t key, const std::string& what) {
    expect(is_subscriber(key >> 8), what + " of no subscriber");
    expect((key & 0xFF) >= 1 && (key & 0xFF) <= kTypes, what + " of no type");
    return Status();
  }

  Status see_forwarding(const RowView& view, uint64_t key) {
    tatp::CallForwardingRow row;
    RDMACC_RETURN_IF_ERROR(row_of(view, "a forwarding", row));
    const std::string of = " of subscriber " + std::to_string(key >> 16);
    const uint64_t start = key & 0xFF;
    expect(facilities_.contains(key >> 8), "a forwarding of no facility" + of);
    expect(start % kForwardingHours == 0 && start < kForwardingsMax * kForwardingHours &&
               row.end > start && row.end <= start + kForwardingHours,
           "a forwarding at no hours" + of);
    const std::string digits(tatp::key_of(row.target));
    const uint64_t target = std::strtoull(digits.c_str(), nullptr, 10);
    expect(is_subscriber(target) && tatp::digits_of(target) == row.target,
           "a call is forwarded to " + digits + of);
    return Status();
  }

  Session& session_;
  const std::span<const TableId> tables_;
  const uint64_t subscribers_;
  std::array<uint64_t, tatp::kTableCount> counts_{};
  std::unordered_set<uint64_t> facilities_;
  std::string wrong_;
};

}  // namespace

Status Tatp::check(Session& session, const TxnOptions& options, int64_t delta,
                   std::string& violation) const {
  ReferenceCheck check(session, tables(), options_.subscribers);
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, check.read_all()));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  violation = check.violation(delta);
  return Status();
}

}  // namespace rdmacc
