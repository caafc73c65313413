#include "engine/protocols/registry.h"

#include <array>

#include "engine/protocols/protocols.h"

namespace rdmacc {
namespace {

#define RDMACC_LISTED(id, name, number) Protocol::k##id,
constexpr std::array kAvailable = {RDMACC_PROTOCOLS(RDMACC_LISTED)};
#undef RDMACC_LISTED

// By the protocols' numbers.
constexpr auto kRules = [] {
  std::array<const ProtocolRules*, kProtocolCount> rules{};
#define RDMACC_RULED(id, name, number) rules.at(number) = &k##id##Rules;
  RDMACC_PROTOCOLS(RDMACC_RULED)
#undef RDMACC_RULED
  return rules;
}();

}  // namespace

const ProtocolRules* rules_of(Protocol protocol, LockMode mode) {
  const auto number = static_cast<size_t>(protocol);
  CHECK(number < kRules.size());
  const ProtocolRules* rules = kRules[number];
  const bool shares = mode == LockMode::kShared && rules->with_shared_locks != nullptr;
  return shares ? rules->with_shared_locks : rules;
}

std::span<const Protocol> available_protocols() { return kAvailable; }

uint16_t stages_of(Protocol protocol) { return rules_of(protocol)->stages; }

bool executes_procedures(Protocol protocol) { return rules_of(protocol)->commits_in_order; }

bool locks_what_it_reads(Protocol protocol) { return rules_of(protocol)->locks_what_it_reads(); }

bool strictly_serializable(Protocol protocol) { return rules_of(protocol)->strictly_serializable; }

bool happens_at_ctts(Protocol protocol) { return rules_of(protocol)->reads_at_ctts; }

bool happens_at_logical_time(Protocol protocol) {
  return rules_of(protocol)->commits_at_least != nullptr;
}

bool may_have_guests(Protocol protocol) { return rules_of(protocol)->may_have_guests(); }

std::string available_protocol_names() {
  std::string names;
  for (const Protocol protocol : kAvailable) {
    if (!names.empty()) names += ", ";
    names += protocol_name(protocol);
  }
  return names;
}

}  // namespace rdmacc
