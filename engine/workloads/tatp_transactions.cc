// TATP's transactions, and the keys that they declare. Four name the subscriber, three a telephone
// number, which is looked up.
#include "engine/workloads/tatp.h"

namespace rdmacc {
namespace {

using tatp::kForwardingHours;

NumberKey typed_key_of(const TxnInputs& inputs) {
  return tatp::typed_key(inputs.values[Tatp::kSubscriber], inputs.values[Tatp::kType]);
}

bool is_by_number(const TxnInputs& inputs) { return inputs.kind >= Tatp::kUpdateLocation; }

// The forwardings of a facility that start at an hour or before.
RowBatch forwardings_up_to(const TxnInputs& inputs) {
  RowBatch batch;
  for (uint64_t start = 0; start <= inputs.values[Tatp::kStart]; start += kForwardingHours) {
    batch.ask(
        tatp::forwarding_key(inputs.values[Tatp::kSubscriber], inputs.values[Tatp::kType], start));
  }
  return batch;
}

}  // namespace

Status Tatp::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  switch (static_cast<Kind>(inputs.kind)) {
    case kGetSubscriberData: {
      tatp::SubscriberRow row;
      return read_row(session, table(tatp::kSubscriber),
                      tatp::subscriber_key(inputs.values[kSubscriber]), "a subscriber", row);
    }
    case kGetNewDestination: {
      tatp::Digits target;
      return get_new_destination(session, inputs, target);
    }
    case kGetAccessData:
      return get_access_data(session, inputs);
    case kUpdateSubscriberData:
      return update_subscriber_data(session, inputs);
    case kUpdateLocation:
      return update_location(session, inputs);
    case kInsertCallForwarding:
      return insert_call_forwarding(session, inputs, effect);
    case kDeleteCallForwarding:
      return delete_call_forwarding(session, inputs, effect);
  }
  CHECK(false);
}

Status Tatp::get_access_data(Session& session, const TxnInputs& inputs) const {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(tatp::kAccessInfo), typed_key_of(inputs), view));
  tatp::AccessInfoRow row;
  return view.found ? row_of(view, "access", row) : Status();
}

Status Tatp::get_new_destination(Session& session, const TxnInputs& inputs,
                                 tatp::Digits& target) const {
  target = {};
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(tatp::kSpecialFacility), typed_key_of(inputs), view));
  if (!view.found) return Status();
  tatp::SpecialFacilityRow facility;
  RDMACC_RETURN_IF_ERROR(row_of(view, "a facility", facility));
  if (facility.is_active == 0) return Status();
  RowBatch forwardings = forwardings_up_to(inputs);
  RDMACC_RETURN_IF_ERROR(forwardings.get(session, table(tatp::kCallForwarding)));
  for (size_t i = 0; i < forwardings.size(); ++i) {
    if (!forwardings.row(i).found) continue;
    tatp::CallForwardingRow row;
    RDMACC_RETURN_IF_ERROR(row_of(forwardings.row(i), "a forwarding", row));
    if (row.end > inputs.values[kEnd]) target = row.target;
  }
  return Status();
}

Status Tatp::update_subscriber_data(Session& session, const TxnInputs& inputs) const {
  const NumberKey facility_key = typed_key_of(inputs);
  const NumberKey subscriber_key = tatp::subscriber_key(inputs.values[kSubscriber]);
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(tatp::kSpecialFacility), facility_key, view));
  if (!view.found) return Status();
  tatp::SpecialFacilityRow facility;
  RDMACC_RETURN_IF_ERROR(row_of(view, "a facility", facility));
  tatp::SubscriberRow subscriber;
  RDMACC_RETURN_IF_ERROR(
      read_row(session, table(tatp::kSubscriber), subscriber_key, "a subscriber", subscriber));
  facility.data_a = static_cast<uint8_t>(inputs.values[kNumber]);
  subscriber.bits[0] = inputs.values[kNumber] >> 8 & 1;
  RDMACC_RETURN_IF_ERROR(
      session.put(table(tatp::kSpecialFacility), facility_key, bytes_of(facility)));
  return session.put(table(tatp::kSubscriber), subscriber_key, bytes_of(subscriber));
}

// Numbers do not change here.
Status Tatp::find_by_number(Session& session, const TxnInputs& inputs, uint64_t& subscriber) const {
  const tatp::Digits digits = tatp::digits_of(inputs.values[kSubscriber]);
  tatp::SubscriberByNumberRow row;
  RDMACC_RETURN_IF_ERROR(read_row(session, table(tatp::kSubscriberByNumber), tatp::key_of(digits),
                                  "a telephone number", row));
  subscriber = row.subscriber;
  return Status();
}

Status Tatp::update_location(Session& session, const TxnInputs& inputs) const {
  uint64_t subscriber = 0;
  RDMACC_RETURN_IF_ERROR(find_by_number(session, inputs, subscriber));
  const NumberKey key = tatp::subscriber_key(subscriber);
  tatp::SubscriberRow row;
  RDMACC_RETURN_IF_ERROR(
      read_row(session, table(tatp::kSubscriber), key, "a number's subscriber", row));
  row.vlr_location = static_cast<uint32_t>(inputs.values[kNumber]);
  return session.put(table(tatp::kSubscriber), key, bytes_of(row));
}

Status Tatp::insert_call_forwarding(Session& session, const TxnInputs& inputs,
                                    TxnEffect& effect) const {
  uint64_t subscriber = 0;
  RDMACC_RETURN_IF_ERROR(find_by_number(session, inputs, subscriber));
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(tatp::kSpecialFacility),
                                     tatp::typed_key(subscriber, inputs.values[kType]), view));
  if (!view.found) return Status();
  const NumberKey key =
      tatp::forwarding_key(subscriber, inputs.values[kType], inputs.values[kStart]);
  RDMACC_RETURN_IF_ERROR(session.get(table(tatp::kCallForwarding), key, view));
  if (view.found) return Status();
  effect.delta = 1;
  const tatp::CallForwardingRow row{static_cast<uint8_t>(inputs.values[kEnd]),
                                    tatp::digits_of(inputs.values[kNumber])};
  return session.insert(table(tatp::kCallForwarding), key, bytes_of(row));
}

Status Tatp::delete_call_forwarding(Session& session, const TxnInputs& inputs,
                                    TxnEffect& effect) const {
  uint64_t subscriber = 0;
  RDMACC_RETURN_IF_ERROR(find_by_number(session, inputs, subscriber));
  const NumberKey key =
      tatp::forwarding_key(subscriber, inputs.values[kType], inputs.values[kStart]);
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(tatp::kCallForwarding), key, view));
  if (!view.found) return Status();
  effect.delta = -1;
  return session.remove(table(tatp::kCallForwarding), key);
}

// ---- The keys

bool Tatp::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  if (is_by_number(inputs)) return false;
  const NumberKey subscriber = tatp::subscriber_key(inputs.values[kSubscriber]);
  const NumberKey typed = typed_key_of(inputs);
  switch (static_cast<Kind>(inputs.kind)) {
    case kGetSubscriberData:
      keys.add(table(tatp::kSubscriber), subscriber, KeyUse::kRead);
      return true;
    case kGetAccessData:
      keys.add(table(tatp::kAccessInfo), typed, KeyUse::kRead);
      return true;
    case kGetNewDestination: {
      const RowBatch forwardings = forwardings_up_to(inputs);
      keys.add(table(tatp::kSpecialFacility), typed, KeyUse::kRead);
      for (size_t i = 0; i < forwardings.size(); ++i) {
        keys.add(table(tatp::kCallForwarding), forwardings.key(i), KeyUse::kRead);
      }
      return true;
    }
    default:
      keys.add(table(tatp::kSpecialFacility), typed, KeyUse::kWrite);
      keys.add(table(tatp::kSubscriber), subscriber, KeyUse::kWrite);
      return true;
  }
}

Status Tatp::survey(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                    KeyDeclaration& keys, bool& known) const {
  known = is_by_number(inputs);
  if (!known) return Status();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  uint64_t subscriber = 0;
  const Status found = find_by_number(session, inputs, subscriber);
  session.abort();
  RDMACC_RETURN_IF_ERROR(found);
  keys.add(table(tatp::kSubscriberByNumber),
           tatp::key_of(tatp::digits_of(inputs.values[kSubscriber])), KeyUse::kRead);
  if (inputs.kind == kUpdateLocation) {
    keys.add(table(tatp::kSubscriber), tatp::subscriber_key(subscriber), KeyUse::kWrite);
    return Status();
  }
  if (inputs.kind == kInsertCallForwarding) {
    keys.add(table(tatp::kSpecialFacility), tatp::typed_key(subscriber, inputs.values[kType]),
             KeyUse::kRead);
  }
  keys.add(table(tatp::kCallForwarding),
           tatp::forwarding_key(subscriber, inputs.values[kType], inputs.values[kStart]),
           KeyUse::kWrite);
  return Status();
}

}  // namespace rdmacc
