#include "engine/txn/rule/stage.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace rdmacc {
namespace {

constexpr std::array<const char*, kStageCount> kStageNames = {
    "lock", "read", "log", "release", "commit", "validate", "renew", "broadcast", "forward"};

constexpr auto kProtocolNames = [] {
  std::array<const char*, kProtocolCount> names{};
#define RDMACC_NAMED(id, name, number) names.at(number) = name;
  RDMACC_PROTOCOLS(RDMACC_NAMED)
#undef RDMACC_NAMED
  return names;
}();
static_assert(std::find(kProtocolNames.begin(), kProtocolNames.end(), nullptr) ==
                  kProtocolNames.end(),
              "numbers of protocols follow on each other, and none is given twice");

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return out;
}

constexpr std::array<const char*, 2> kLockModeNames = {"exclusive", "shared"};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Status bad_plan(std::string why) {
  return Status(Code::kInvalidArgument,
                std::move(why) +
                    "; a stage plan is one_sided, rpc, a hybrid code 0 .. 511, or a list such as "
                    "lock=rpc,log=one_sided with the stages lock, read, log, release, commit, "
                    "validate, renew, broadcast, forward");
}

Result<StagePlan> parse_list(std::string_view text) {
  uint16_t code = kStageCodeMax;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return bad_plan("\"" + std::string(item) + "\" is not stage=primitive");
    }
    const std::string name(trim(item.substr(0, equals)));
    const std::string_view primitive = trim(item.substr(equals + 1));
    const auto* stage = std::find(kStageNames.begin(), kStageNames.end(), name);
    if (stage == kStageNames.end()) return bad_plan("unknown stage \"" + name + "\"");
    const auto bit = static_cast<uint16_t>(1u << (stage - kStageNames.begin()));
    if (primitive == "one_sided") {
      code = static_cast<uint16_t>(code | bit);
    } else if (primitive == "rpc") {
      code = static_cast<uint16_t>(code & ~bit);
    } else {
      return bad_plan("unknown primitive \"" + std::string(primitive) + "\"");
    }
  }
  return StagePlan(code);
}

}  // namespace

const char* stage_name(Stage stage) { return kStageNames[stage_index(stage)]; }

const char* primitive_name(Primitive primitive) {
  return primitive == Primitive::kOneSided ? "one_sided" : "rpc";
}

const char* lock_mode_name(LockMode mode) { return kLockModeNames[static_cast<size_t>(mode)]; }

std::optional<LockMode> parse_lock_mode(std::string_view name) {
  const std::string wanted = lower(name);
  for (size_t i = 0; i < kLockModeNames.size(); i++) {
    if (wanted == kLockModeNames[i]) return static_cast<LockMode>(i);
  }
  return std::nullopt;
}

const char* protocol_name(Protocol protocol) {
  return kProtocolNames[static_cast<size_t>(protocol)];
}

std::optional<Protocol> parse_protocol(std::string_view name) {
  const std::string wanted = lower(name);
  for (uint32_t i = 0; i < kProtocolCount; i++) {
    if (wanted == kProtocolNames[i]) return static_cast<Protocol>(i);
  }
  return std::nullopt;
}

Result<StagePlan> StagePlan::parse(std::string_view text) {
  const std::string plan = lower(trim(text));
  if (plan == "one_sided") return StagePlan(kStageCodeMax);
  if (plan == "rpc") return StagePlan(0);
  if (plan.empty()) return bad_plan("the stage plan is empty");
  if (plan.find('=') != std::string::npos) return parse_list(plan);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(plan.data(), plan.data() + plan.size(), code);
  if (error == std::errc::result_out_of_range ||
      (error == std::errc() && end == plan.data() + plan.size() && code > kStageCodeMax)) {
    return bad_plan("hybrid code " + plan + " is out of range");
  }
  if (error != std::errc() || end != plan.data() + plan.size()) {
    return bad_plan("\"" + plan + "\" is no stage plan");
  }
  return StagePlan(static_cast<uint16_t>(code));
}

std::string StagePlan::to_string(uint16_t protocol_stages) const {
  const auto own = static_cast<uint16_t>(code_ & protocol_stages);
  if (own == protocol_stages) return "one_sided";
  if (own == 0) return "rpc";
  std::string text;
  for (uint32_t i = 0; i < kStageCount; i++) {
    const auto stage = static_cast<Stage>(1u << i);
    if ((protocol_stages & (1u << i)) == 0) continue;
    if (!text.empty()) text += ',';
    text += std::string(kStageNames[i]) + "=" + primitive_name(of(stage));
  }
  return text;
}

}  // namespace rdmacc
