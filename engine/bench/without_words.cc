#include "engine/bench/without_words.h"

#include <algorithm>

namespace rdmacc {
namespace {

struct NamedSaving {
  const char* name;
  bool VerbSavings::*saving;
};
constexpr NamedSaving kSavings[] = {
    {"doorbell_batches", &VerbSavings::doorbell_batches},
    {"outstanding_requests", &VerbSavings::outstanding_requests},
    {"one_cas", &VerbSavings::one_cas},
    {"one_read", &VerbSavings::one_read},
    {"one_round", &VerbSavings::one_round},
};

Status refuse_without(const std::string& text, const std::string& why) {
  return Status(Code::kInvalidArgument, "--without=" + text + why);
}

bool leave_out(const std::string& name, VerbSavings& savings) {
  for (const NamedSaving& each : kSavings) {
    if (name != each.name) continue;
    savings.*each.saving = false;
    return true;
  }
  return false;
}

}  // namespace

std::string saving_names() {
  std::string names;
  for (const NamedSaving& each : kSavings)
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

Status take_without(const std::string& text, BenchOptions& options) {
  if (text == "none") return Status();
  if (options.fabric == FabricKind::kShm) {
    return refuse_without(text, " means nothing on shm, where verbs are carried out in place");
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    if (!leave_out(text.substr(begin, end - begin), options.savings)) {
      return refuse_without(text, " is not available; possible are none, " + saving_names());
    }
    begin = end + 1;
  }
  options.without = text;
  return Status();
}

}  // namespace rdmacc
