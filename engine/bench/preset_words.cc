#include "engine/bench/preset_words.h"

#include <algorithm>

#include "engine/protocols/presets.h"

namespace rdmacc {

// Stages of the preset that another protocol, which was given, has as well, stay as they are.
Status take_preset(OptionWords& words) {
  if (words.preset.empty()) return Status();
  const Preset* preset = find_preset(words.preset);
  if (preset == nullptr) {
    return Status(Code::kInvalidArgument, "--preset=" + words.preset +
                                              " is not available; possible are " + preset_names() +
                                              " (--preset=help describes them)");
  }
  if (!words.was_given("protocol")) words.protocol = protocol_name(preset->protocol);
  if (!words.was_given("stages")) {
    words.stages = preset->chooses ? "auto" : std::to_string(preset->one_sided);
  }
  if (!words.was_given("lock-mode")) words.lock_mode = lock_mode_name(preset->lock_mode);
  if (!words.was_given("location-cache")) {
    words.location_cache = preset->location_cache ? "on" : "off";
  }
  if (!words.was_given("coroutines") && preset->coroutines > 0) {
    words.coroutines = preset->coroutines;
  }
  return Status();
}

// Disks and backups exclude each other, and disks were asked for.
void take_preset_sizes(OptionWords& words) {
  const Preset* preset = words.preset.empty() ? nullptr : find_preset(words.preset);
  if (preset == nullptr || words.was_given("replicas") || words.durability != "memory") return;
  words.replicas = std::min<int64_t>(preset->replicas, std::max<int64_t>(words.nodes - 1, 0));
}

}  // namespace rdmacc
