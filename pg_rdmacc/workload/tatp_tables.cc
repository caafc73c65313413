#include "pg_rdmacc/workload/tatp_tables.h"

#include "pg_rdmacc/workload/native_query.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

namespace {

constexpr RdmaccNativeColumn kSubscriber[] = {
    {"s_id", INT4OID, 1},        {"sub_nbr", VARCHAROID, 1}, {"bit_", INT2OID, 10},
    {"hex_", INT2OID, 10},       {"byte2_", INT2OID, 10},    {"msc_location", INT4OID, 1},
    {"vlr_location", INT4OID, 1}};
constexpr RdmaccNativeColumn kAccess[] = {{"s_id", INT4OID, 1},     {"ai_type", INT2OID, 1},
                                          {"data1", INT2OID, 1},    {"data2", INT2OID, 1},
                                          {"data3", VARCHAROID, 1}, {"data4", VARCHAROID, 1}};
constexpr RdmaccNativeColumn kFacility[] = {{"s_id", INT4OID, 1},      {"sf_type", INT2OID, 1},
                                            {"is_active", INT2OID, 1}, {"error_cntrl", INT2OID, 1},
                                            {"data_a", INT2OID, 1},    {"data_b", VARCHAROID, 1}};
constexpr RdmaccNativeColumn kForwarding[] = {{"s_id", INT4OID, 1},
                                              {"sf_type", INT2OID, 1},
                                              {"start_time", INT2OID, 1},
                                              {"end_time", INT2OID, 1},
                                              {"numberx", VARCHAROID, 1}};

constexpr int kSubNbrAttribute = 2;

constexpr char kProcedure[] = "tatp_create";

constexpr RdmaccNativeShape kShapes[] = {
    rdmacc_native_shape(kProcedure, "subscriber", kSubscriber, 1, {.unique = kSubNbrAttribute}),
    rdmacc_native_shape(kProcedure, "access_info", kAccess, 2),
    rdmacc_native_shape(kProcedure, "special_facility", kFacility, 2),
    rdmacc_native_shape(kProcedure, "call_forwarding", kForwarding, 3)};

RdmaccNativeQuery by_number = {.text = "SELECT s_id FROM subscriber WHERE sub_nbr = $1",
                               .argument_count = 1,
                               .types = {TEXTOID},
                               .plan = nullptr,
                               .column_count = 1,
                               .column_types = {INT4OID}};

}  // namespace

RdmaccNativeTable tatp_subscriber = rdmacc_native_table_of(&kShapes[0]),
                  tatp_access_info = rdmacc_native_table_of(&kShapes[1]),
                  tatp_special_facility = rdmacc_native_table_of(&kShapes[2]),
                  tatp_call_forwarding = rdmacc_native_table_of(&kShapes[3]);

bool tatp_find_subscriber(Datum number, int32* subscriber) {
  return rdmacc_native_find(&by_number, &number, subscriber);
}

Datum tatp_smallint(int32 value) { return DirectFunctionCall1(i4toi2, Int32GetDatum(value)); }
