#pragma once
#include "engine/workloads/rows.h"
#include "engine/workloads/settings.h"

namespace rdmacc {

class BulkLoad;

// TATP's tables: their keys and rows. Subscribers and types count from 1.
namespace tatp {

constexpr uint64_t kTypes = 4;           // of access, and of special facilities
constexpr uint64_t kForwardingsMax = 3;  // of a facility, from 0, 8 and 16 o'clock on
constexpr uint64_t kForwardingHours = 8;

// The numbers of the tables, in the order of Tatp::tables(). The second is not TATP's own: it says
// which subscriber has a telephone number.
enum Table : uint32_t {
  kSubscriber,
  kSubscriberByNumber,
  kAccessInfo,
  kSpecialFacility,
  kCallForwarding,
  kTableCount
};

using Digits = Text<15>;
// The subscriber's telephone number: the subscriber's own, with zeros before it.
Digits digits_of(uint64_t subscriber);
inline std::string_view key_of(const Digits& digits) { return {digits.data(), digits.size()}; }

inline NumberKey subscriber_key(uint64_t subscriber) { return NumberKey(subscriber); }
// Of access_info and special_facility.
inline NumberKey typed_key(uint64_t subscriber, uint64_t type) {
  return NumberKey(subscriber << 8 | type);
}
inline NumberKey forwarding_key(uint64_t subscriber, uint64_t facility, uint64_t start) {
  return NumberKey(subscriber << 16 | facility << 8 | start);
}

struct SubscriberRow {
  uint32_t msc_location = 0, vlr_location = 0;
  Digits number{};
  std::array<uint8_t, 10> bits{}, hexes{}, bytes{};
};

struct SubscriberByNumberRow {
  uint64_t subscriber = 0;
};

struct AccessInfoRow {
  uint8_t data1 = 0, data2 = 0;
  Text<3> data3{};
  Text<5> data4{};
};

struct SpecialFacilityRow {
  uint8_t is_active = 0, error_control = 0, data_a = 0;
  Text<5> data_b{};
};

struct CallForwardingRow {
  uint8_t end = 0;  // an hour
  Digits target{};  // a subscriber's number
};

// How many forwardings the load gives a subscriber: it follows from the subscriber's number.
uint32_t loaded_forwardings(uint64_t subscriber);

}  // namespace tatp

struct TatpOptions {
  uint64_t subscribers = 100'000;
  uint32_t history = kDefaultHistory;
};

extern const WorkloadKind kTatpKind;

// TATP's seven transactions in its mix. What finds no row, or one that is there already, changes
// nothing and commits. Invariant: every row refers to one that is there, and there are as many
// forwardings as were loaded, inserted and not deleted.
class Tatp : public Workload {
 public:
  enum Kind : uint32_t {
    kGetSubscriberData,
    kGetNewDestination,
    kGetAccessData,
    kUpdateSubscriberData,
    kUpdateLocation,
    kInsertCallForwarding,
    kDeleteCallForwarding
  };
  // The inputs of every kind, of which each uses what it needs.
  enum Value : uint32_t { kSubscriber, kType, kStart, kEnd, kNumber, kValues };

  explicit Tatp(const TatpOptions& options);

  const char* name() const override { return "tatp"; }
  std::vector<TableSpec> table_specs() const override;
  Status load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) override;
  uint64_t load_parts() const override;
  TxnInputs draw(Random& random) const override;
  Status execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const override;
  // Not of those that look a subscriber up by number: they are surveyed.
  bool declare(const TxnInputs& inputs, KeyDeclaration& keys) const override;
  Status survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                KeyDeclaration& keys, bool& known) const override;
  bool knows(const TxnInputs& inputs) const override;
  Status check(Session& session, const TxnOptions& options, int64_t delta,
               std::string& violation) const override;

  // The logic of this kind, with its answer: where a call goes, or no digits at all.
  Status get_new_destination(Session& session, const TxnInputs& inputs, tatp::Digits& target) const;

 private:
  // tatp_transactions.cc
  Status get_access_data(Session& session, const TxnInputs& inputs) const;
  Status update_subscriber_data(Session& session, const TxnInputs& inputs) const;
  Status update_location(Session& session, const TxnInputs& inputs) const;
  Status insert_call_forwarding(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;
  Status delete_call_forwarding(Session& session, const TxnInputs& inputs, TxnEffect& effect) const;
  Status find_by_number(Session& session, const TxnInputs& inputs, uint64_t& subscriber) const;

  Status load_subscriber(BulkLoad& rows, uint64_t subscriber) const;
  uint64_t draw_subscriber(Random& random) const;

  const TatpOptions options_;
};

}  // namespace rdmacc
