#pragma once
#include "engine/txn/rule.h"

namespace rdmacc {

// One per protocol file; the registry lists them.
extern const ProtocolRules kNowaitRules;
extern const ProtocolRules kOccRules;

}  // namespace rdmacc
