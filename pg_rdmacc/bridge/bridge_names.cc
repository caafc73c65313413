// The names of engine_bridge.h: protocols, stage plans and presets. Needs no attachment.
#include <cstdio>
#include <optional>

#include "engine/protocols/presets.h"
#include "engine/protocols/registry.h"
#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

using rdmacc::Result;
using rdmacc::bridge::no_throw;

// ---- Names

int bridge_parse_protocol(const char* name) {
  CHECK(name != nullptr);
  const std::optional<rdmacc::Protocol> protocol = rdmacc::parse_protocol(name);
  return protocol.has_value() ? static_cast<int>(*protocol) : -1;
}

const char* bridge_protocol_name(int protocol) {
  if (!bridge_protocol_available(protocol)) return "unknown";
  return rdmacc::protocol_name(static_cast<rdmacc::Protocol>(protocol));
}

bool bridge_protocol_available(int protocol) {
  return protocol >= 0 && protocol < static_cast<int>(rdmacc::kProtocolCount);
}

const char* bridge_lock_mode_name(int mode) {
  if (mode < 0 || mode > static_cast<int>(rdmacc::LockMode::kShared)) return nullptr;
  return rdmacc::lock_mode_name(static_cast<rdmacc::LockMode>(mode));
}

bool bridge_preset(int number, BridgePreset* preset) {
  CHECK(preset != nullptr);
  if (number < 0 || static_cast<size_t>(number) >= rdmacc::presets().size()) return false;
  const rdmacc::Preset& found = rdmacc::presets()[static_cast<size_t>(number)];
  *preset = {found.name,          static_cast<int>(found.protocol),
             found.plan().code(), found.chooses,
             found.lock_mode,     found.locks_at_write};
  return true;
}

bool bridge_parse_stages(const char* text, uint16_t* code, const char** why) {
  CHECK(text != nullptr && code != nullptr && why != nullptr);
  static char message[256];
  bool parsed = false;
  snprintf(message, sizeof(message), "out of memory");
  no_throw([&] {
    const Result<rdmacc::StagePlan> plan = rdmacc::StagePlan::parse(text);
    parsed = plan.ok();
    if (parsed) *code = plan.value().code();
    snprintf(message, sizeof(message), "%s", plan.status().message().c_str());
  });
  *why = message;
  return parsed;
}

void bridge_stages_text(int protocol, uint16_t code, char* out, size_t out_bytes) {
  if (out_bytes == 0) return;
  out[0] = '\0';
  no_throw([&] {
    CHECK(bridge_protocol_available(protocol));
    const uint16_t stages = rdmacc::stages_of(static_cast<rdmacc::Protocol>(protocol));
    snprintf(out, out_bytes, "%s", rdmacc::StagePlan(code).to_string(stages).c_str());
  });
}
