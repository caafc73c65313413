#include "engine/workloads/settings.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace rdmacc {
namespace {

Status invalid(std::string what) { return Status(Code::kInvalidArgument, std::move(what)); }

const WorkloadSetting* find_setting(std::span<const WorkloadSetting> known, std::string_view name) {
  for (const WorkloadSetting& setting : known) {
    if (name == setting.name || (setting.alias != nullptr && name == setting.alias)) {
      return &setting;
    }
  }
  return nullptr;
}

}  // namespace

std::string setting_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", value);
  return text;
}

std::string WorkloadSetting::range() const {
  return setting_text(least) + " .. " + setting_text(most);
}

WorkloadSettings::WorkloadSettings(std::span<const WorkloadSetting> known) : known_(known) {
  for (const WorkloadSetting& setting : known_) values_[setting.name] = setting.otherwise;
}

Status WorkloadSettings::set(std::string_view name_or_alias, double value) {
  const WorkloadSetting* setting = find_setting(known_, name_or_alias);
  if (setting == nullptr) {
    std::string names;
    for (const WorkloadSetting& each : known_) names += std::string(" ") + each.name;
    return invalid("there is no setting \"" + std::string(name_or_alias) + "\"; possible are" +
                   names);
  }
  // Written so that it also refuses what is not a number.
  if (!(value >= setting->least && value <= setting->most) ||
      (!setting->fraction && value != std::floor(value))) {
    return invalid("--" + std::string(name_or_alias) + " must be " +
                   (setting->fraction ? "" : "a whole number, ") + setting->range());
  }
  values_[setting->name] = value;
  return Status();
}

Status WorkloadSettings::parse(std::string_view text) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const std::string number(equals == item.npos ? "" : item.substr(equals + 1));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') {
      return invalid("\"" + std::string(item) + "\" is not a setting=number");
    }
    RDMACC_RETURN_IF_ERROR(set(item.substr(0, equals), value));
  }
  return Status();
}

std::string WorkloadSettings::to_string() const {
  std::string text;
  for (const WorkloadSetting& setting : known_) {
    text += (text.empty() ? "" : ",") + std::string(setting.name) + "=" +
            setting_text(fraction(setting.name));
  }
  return text;
}

double WorkloadSettings::fraction(std::string_view name) const {
  const auto value = values_.find(name);
  CHECK(value != values_.end());
  return value->second;
}

}  // namespace rdmacc
