/* TATP's tables, as rdmacc.tatp_create() makes them. */
#pragma once
#include "pg_rdmacc/workload/native_table.h"

enum SubscriberColumn { kSubscriberBit1 = 2, kSubscriberVlrLocation = 33 };
enum AccessColumn { kAccessData1 = 2, kAccessColumns = 6 };
enum FacilityColumn { kFacilityIsActive = 2, kFacilityDataA = 4 };
enum ForwardingColumn {
  kForwardingSubscriber,
  kForwardingFacility,
  kForwardingStart,
  kForwardingEnd,
  kForwardingNumber,
  kForwardingColumns
};

constexpr int kForwardingHours = 8; /* from one start to the next */

extern RdmaccNativeTable tatp_subscriber, tatp_access_info, tatp_special_facility,
    tatp_call_forwarding;

/* False where no subscriber has the number, a text. */
bool tatp_find_subscriber(Datum number, int32* subscriber);

/* As ::smallint. */
Datum tatp_smallint(int32 value);
