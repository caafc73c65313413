#include "engine/bench/without_words.h"

#include <algorithm>

namespace rdmacc {
namespace {

bool leave_out(const std::string& name, VerbSavings& savings) {
  for (const NamedSaving& each : kVerbSavings) {
    if (name != each.name) continue;
    savings.*each.saving = false;
    return true;
  }
  return false;
}

}  // namespace

std::string saving_names() {
  std::string names;
  for (const NamedSaving& each : kVerbSavings) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  return names;
}

Result<VerbSavings> parse_without(const std::string& text) {
  VerbSavings savings;
  if (text == "none") return savings;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    if (!leave_out(text.substr(begin, end - begin), savings)) {
      return Status(Code::kInvalidArgument, "--without=" + text +
                                                " is not available; possible are none, " +
                                                saving_names() + ", several by +");
    }
    begin = end + 1;
  }
  return savings;
}

std::string without_text(const VerbSavings& savings) {
  std::string names;
  for (const NamedSaving& each : kVerbSavings) {
    if (!(savings.*each.saving)) names += (names.empty() ? "" : "+") + std::string(each.name);
  }
  return names;
}

}  // namespace rdmacc
