#include "engine/txn/driver/driver.h"

namespace rdmacc {

StageRule::StageRule(Rule rule)
    : StageRule(rule, [](StageContext& context, Rule by, std::span<RecordState> records) {
        return Driver(context, by, records).run();
      }) {}

}  // namespace rdmacc
