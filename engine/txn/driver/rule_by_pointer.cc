#include "engine/txn/driver/driver.h"

namespace rdmacc {

Status drive_by_pointer(StageContext& context, Rule rule, std::span<RecordState> records) {
  return Driver(context, rule, records).run();
}

StageRule::StageRule(Rule rule) : StageRule(rule, drive_by_pointer) {}

}  // namespace rdmacc
