#include "engine/protocols/registry.h"

#include <array>

#include "engine/protocols/protocols.h"

namespace rdmacc {
namespace {

constexpr std::array kAvailable = {Protocol::kNowait, Protocol::kWaitdie,   Protocol::kWoundwait,
                                   Protocol::kOcc,    Protocol::kMvcc,      Protocol::kSundial,
                                   Protocol::kTictoc, Protocol::kTimestamp, Protocol::kCicada,
                                   Protocol::kCalvin};

}  // namespace

const ProtocolRules* rules_of(Protocol protocol, LockMode mode) {
  switch (protocol) {
    case Protocol::kNowait:
      return mode == LockMode::kShared ? &kNowaitSharedRules : &kNowaitRules;
    case Protocol::kWaitdie:
      return &kWaitdieRules;
    case Protocol::kWoundwait:
      return &kWoundwaitRules;
    case Protocol::kOcc:
      return &kOccRules;
    case Protocol::kMvcc:
      return &kMvccRules;
    case Protocol::kSundial:
      return &kSundialRules;
    case Protocol::kTictoc:
      return &kTictocRules;
    case Protocol::kTimestamp:
      return &kTimestampRules;
    case Protocol::kCicada:
      return &kCicadaRules;
    case Protocol::kCalvin:
      return &kCalvinRules;
    default:
      return nullptr;
  }
}

std::span<const Protocol> available_protocols() { return kAvailable; }

uint16_t stages_of(Protocol protocol) {
  const ProtocolRules* rules = rules_of(protocol, LockMode::kExclusive);
  return rules == nullptr ? 0 : rules->stages;
}

bool executes_procedures(Protocol protocol) {
  const ProtocolRules* rules = rules_of(protocol, LockMode::kExclusive);
  return rules != nullptr && rules->commits_in_order;
}

bool locks_what_it_reads(Protocol protocol) {
  const ProtocolRules* rules = rules_of(protocol, LockMode::kExclusive);
  return rules != nullptr && rules->locks_what_it_reads();
}

bool strictly_serializable(Protocol protocol) {
  const ProtocolRules* rules = rules_of(protocol, LockMode::kExclusive);
  CHECK(rules != nullptr);
  return rules->strictly_serializable;
}

bool happens_at_ctts(Protocol protocol) {
  const ProtocolRules* rules = rules_of(protocol, LockMode::kExclusive);
  return rules != nullptr && rules->reads_at_ctts;
}

std::string available_protocol_names() {
  std::string names;
  for (const Protocol protocol : kAvailable) {
    if (!names.empty()) names += ", ";
    names += protocol_name(protocol);
  }
  return names;
}

}  // namespace rdmacc
