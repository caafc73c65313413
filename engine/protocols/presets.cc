#include "engine/protocols/presets.h"

#include <strings.h>

#include <array>

#include "engine/protocols/registry.h"

namespace rdmacc {
namespace {

constexpr uint16_t kAll = kStageCodeMax, kNone = 0;
// A stage's check of what was read is Validate, or Renew.
constexpr uint16_t kChecks =
    static_cast<uint16_t>(Stage::kValidate) | static_cast<uint16_t>(Stage::kRenew);
constexpr uint16_t kReadsChecksLog =
    static_cast<uint16_t>(Stage::kRead) | kChecks | static_cast<uint16_t>(Stage::kLog);

// The stages of the first four are those of DrTM+H's table 4, whose stores have three copies.
constexpr std::array kPresets = {
    Preset{.name = "farm",
           .emulates = "OCC: one-sided reads, validation and log; locks and commits by RPC",
           .leaves_out = "validation by RPC where many rows of one node were read; truncation of "
                         "the log by the backups, which apply it",
           .protocol = Protocol::kOcc,
           .one_sided = kReadsChecksLog,
           .replicas = 2,
           .location_cache = false},
    Preset{.name = "drtm_r",
           .emulates = "OCC: every stage one-sided, locks by atomics, a location cache",
           .leaves_out = "hardware transactional memory for local rows (DrTM+H's emulation has "
                         "none, either)",
           .protocol = Protocol::kOcc,
           .one_sided = kAll,
           .replicas = 2},
    Preset{.name = "fasst",
           .emulates = "OCC: every stage by RPC over datagrams (FaSST-OCC of DrTM+H)",
           .leaves_out = "locks at the first access, which its own protocol takes where the write "
                         "set is known beforehand",
           .protocol = Protocol::kOcc,
           .one_sided = kNone,
           .replicas = 2,
           .location_cache = false},
    Preset{.name = "drtm_h",
           .emulates = "OCC: for each stage the primitive that is the faster one, a location cache",
           .leaves_out = "the choice for each row (READ if its place is cached, else RPC): it is "
                         "made for each stage, by what was measured; passive acknowledgement; "
                         "speculative execution",
           .protocol = Protocol::kOcc,
           .one_sided = kAll,
           .chooses = true,
           .replicas = 2},
    Preset{
        .name = "rcbench",
        .emulates = "NOWAIT with exclusive locks, every stage one-sided, 8 coroutines, no copies",
        .leaves_out = "its other protocols (--protocol, rdmacc.protocol); the cuckoo index",
        .protocol = Protocol::kNowait,
        .one_sided = kAll,
        .coroutines = 8,
        .location_cache = false},
    Preset{.name = "ford",
           .emulates = "OCC: every stage one-sided; what is written is locked when it is written",
           .leaves_out = "persistent memory and its flushes; reads of backups; undo logs that are "
                         "written while the transaction runs",
           .protocol = Protocol::kOcc,
           .one_sided = kAll,
           .locks_at_write = true,
           .replicas = 2},
    Preset{.name = "motor",
           .emulates = "multi-version OCC (CICADA): old versions side by side, every stage "
                       "one-sided",
           .leaves_out = "snapshot isolation, its other level; the newest version beside the old "
                         "ones; versions in the place of a log",
           .protocol = Protocol::kCicada,
           .one_sided = kAll,
           .replicas = 2},
};

}  // namespace

std::string Preset::stages_text() const {
  return chooses ? "auto" : std::to_string(plan().canonical(stages_of(protocol)).code());
}

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  const std::string wanted(name);
  for (const Preset& preset : kPresets) {
    if (strcasecmp(preset.name, wanted.c_str()) == 0) return &preset;
  }
  return nullptr;
}

std::string preset_names() {
  std::string names;
  for (const Preset& preset : kPresets) {
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  return names;
}

std::string describe_presets() {
  std::string text;
  for (const Preset& preset : kPresets) {
    text +=
        std::string(preset.name) + ": " + preset.emulates + "\n    protocol " +
        protocol_name(preset.protocol) + ", stages " + preset.stages_text() + ", " +
        lock_mode_name(preset.lock_mode) + " locks, " + std::to_string(preset.replicas) +
        " replicas" + (preset.location_cache ? "" : ", no location cache") +
        (preset.coroutines > 0 ? ", " + std::to_string(preset.coroutines) + " coroutines" : "") +
        (preset.locks_at_write ? ", in SQL locks at write" : "") +
        "\n    not there: " + preset.leaves_out + "\n";
  }
  return text;
}

}  // namespace rdmacc
