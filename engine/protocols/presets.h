#pragma once
#include <span>
#include <string>
#include <string_view>

#include "engine/txn/rule/stage.h"

// Settings that emulate whole systems, as DrTM+H §6 compares them: on one engine, with the protocol
// and the primitives of each. A preset is no more than its settings: what a caller is asked for
// beside it wins. docs/protocols.md §7 says what of each system is not there.

namespace rdmacc {

struct Preset {
  const char* name;
  const char* emulates;    // in one line
  const char* leaves_out;  // likewise
  Protocol protocol;
  // Which stages run one-sided: bits of Stage, those of other protocols among them, for a caller
  // that takes another protocol. `chooses`: whatever takes less time, stage by stage.
  uint16_t one_sided;
  bool chooses = false;
  LockMode lock_mode = LockMode::kExclusive;
  // What is written is locked when it is written, not at the commit (of callers that can).
  bool locks_at_write = false;
  // Of a coordinator. Where there are fewer nodes than copies, as many backups as there can be.
  uint32_t replicas = 0;
  uint32_t coroutines = 0;  // 0: the system does not say, or leaves it open
  bool location_cache = true;

  StagePlan plan() const { return StagePlan(one_sided); }
  // What the stages are called on command lines: "auto", or their code under the protocol.
  std::string stages_text() const;
};

std::span<const Preset> presets();
const Preset* find_preset(std::string_view name);  // any case; nullptr: there is none
std::string preset_names();                        // "farm, drtm_r, …"
std::string describe_presets();                    // some lines for each

}  // namespace rdmacc
