#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/check/history_file.h"

// Parsing of history files; the one place that includes the JSON library for them.

namespace rdmacc {
namespace {

using nlohmann::json;

Status corrupt(std::string what) { return Status(Code::kCorrupt, std::move(what)); }

Status number_at(const json& parent, size_t index, const char* what, uint64_t max,
                 uint64_t* value) {
  if (!parent[index].is_number_unsigned() || parent[index].get<uint64_t>() > max) {
    return corrupt(std::string(what) + " is not a number of 0 .. " + std::to_string(max));
  }
  *value = parent[index].get<uint64_t>();
  return Status();
}

constexpr uint64_t kMax64 = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMax32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMax16 = std::numeric_limits<uint16_t>::max();

Status parse_groups(const json& list, std::vector<ScannedGroup>& groups) {
  if (!list.is_array()) return corrupt("the groups of a scan are not a list");
  for (const json& item : list) {
    if (!item.is_array() || item.size() != 4) {
      return corrupt("a scanned group is not [node, bits, depth, gap stamp]");
    }
    uint64_t node = 0, bits = 0, depth = 0, stamp = 0;
    RDMACC_RETURN_IF_ERROR(number_at(item, 0, "the node of a group", kMax16 - 1, &node));
    RDMACC_RETURN_IF_ERROR(number_at(item, 1, "the bits of a group", kMax64, &bits));
    RDMACC_RETURN_IF_ERROR(number_at(item, 2, "the depth of a group", 63, &depth));
    RDMACC_RETURN_IF_ERROR(number_at(item, 3, "the stamp of a group", kMax64, &stamp));
    groups.push_back({static_cast<NodeId>(node), bits, static_cast<uint32_t>(depth), stamp});
  }
  return Status();
}

Status parse_event(const json& item, HistoryEvent& event) {
  if (!item.is_array() || item.empty() || !item[0].is_string()) {
    return corrupt("an operation is not a list that begins with its letter");
  }
  const std::string& letter = item[0].get_ref<const std::string&>();
  if (letter.size() != 1 || std::strchr("rmswid", letter[0]) == nullptr) {
    return corrupt("operation \"" + letter + "\" is none of r, m, s, w, i, d");
  }
  event.op = static_cast<HistoryOp>(letter[0]);
  const bool scan = event.op == HistoryOp::kScan;
  if (item.size() != (scan ? 3u : 4u)) {
    return corrupt("operation " + letter + " has " + std::to_string(item.size()) + " fields");
  }
  uint64_t table = 0;
  RDMACC_RETURN_IF_ERROR(number_at(item, 1, "the table", kMax32, &table));
  event.table = static_cast<TableId>(table);
  if (scan) return parse_groups(item[2], event.groups);
  if (!item[2].is_string()) return corrupt("the key is not a string");
  std::optional<std::string> key = parse_printable_key(item[2].get_ref<const std::string&>());
  if (!key) return corrupt("the key has a backslash that is not \\xHEX");
  event.key = std::move(*key);
  return number_at(item, 3, "the version", kMax64, &event.version);
}

Status named_number(const json& object, const char* name, uint64_t max, uint64_t* value) {
  const auto found = object.find(name);
  if (found == object.end()) return corrupt(std::string("\"") + name + "\" is missing");
  if (!found->is_number_unsigned() || found->get<uint64_t>() > max) {
    return corrupt(std::string("\"") + name + "\" is not a number of 0 .. " + std::to_string(max));
  }
  *value = found->get<uint64_t>();
  return Status();
}

Status named_text(const json& object, const char* name, std::string* value) {
  const auto found = object.find(name);
  if (found == object.end()) return corrupt(std::string("\"") + name + "\" is missing");
  if (!found->is_string()) return corrupt(std::string("\"") + name + "\" is not a string");
  *value = found->get<std::string>();
  return Status();
}

Status parse_numbers(const json& object, HistoryTransaction& transaction) {
  uint64_t worker = 0, stages = 0;
  RDMACC_RETURN_IF_ERROR(named_number(object, "txn", kMax64, &transaction.ctts));
  RDMACC_RETURN_IF_ERROR(named_number(object, "worker", kMax16, &worker));
  RDMACC_RETURN_IF_ERROR(named_number(object, "stages", kStageCodeMax, &stages));
  RDMACC_RETURN_IF_ERROR(named_number(object, "start", kMax64, &transaction.start_us));
  RDMACC_RETURN_IF_ERROR(named_number(object, "end", kMax64, &transaction.end_us));
  transaction.worker = static_cast<WorkerId>(worker);
  transaction.stages = static_cast<uint16_t>(stages);
  return Status();
}

Status parse_names(const json& object, HistoryTransaction& transaction) {
  std::string protocol, outcome, reason;
  RDMACC_RETURN_IF_ERROR(named_text(object, "protocol", &protocol));
  RDMACC_RETURN_IF_ERROR(named_text(object, "outcome", &outcome));
  const std::optional<Protocol> known = parse_protocol(protocol);
  if (!known) return corrupt("protocol \"" + protocol + "\" is not known");
  transaction.protocol = *known;
  if (outcome == "committed") {
    transaction.outcome = HistoryOutcome::kCommitted;
  } else if (outcome == "aborted") {
    transaction.outcome = HistoryOutcome::kAborted;
  } else if (outcome == "unknown") {
    transaction.outcome = HistoryOutcome::kUnknown;
  } else {
    return corrupt("outcome \"" + outcome + "\" is none of committed, aborted, unknown");
  }
  if (!object.contains("reason")) return Status();
  RDMACC_RETURN_IF_ERROR(named_text(object, "reason", &reason));
  for (uint16_t r = 0; r < static_cast<uint16_t>(AbortReason::kCount); ++r) {
    if (reason == abort_reason_name(static_cast<AbortReason>(r))) {
      transaction.reason = static_cast<AbortReason>(r);
      return Status();
    }
  }
  return corrupt("reason \"" + reason + "\" is not known");
}

}  // namespace

Result<HistoryTransaction> parse_json_line(const std::string& line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return corrupt("not JSON");
  if (!object.is_object()) return corrupt("not a JSON object");
  HistoryTransaction transaction;
  RDMACC_RETURN_IF_ERROR(parse_numbers(object, transaction));
  RDMACC_RETURN_IF_ERROR(parse_names(object, transaction));
  const auto ops = object.find("ops");
  if (ops == object.end() || !ops->is_array()) return corrupt("\"ops\" is not a list");
  transaction.events.reserve(ops->size());
  for (const json& item : *ops) {
    RDMACC_RETURN_IF_ERROR(parse_event(item, transaction.events.emplace_back()));
  }
  return transaction;
}

Result<std::vector<HistoryTransaction>> read_history(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(Code::kSystem, "cannot open " + path + ": " + std::strerror(errno));
  std::vector<HistoryTransaction> history;
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    Result<HistoryTransaction> transaction = parse_json_line(line);
    if (!transaction.ok()) {
      return corrupt(path + " line " + std::to_string(number) + ": " +
                     transaction.status().message());
    }
    history.push_back(std::move(*transaction));
  }
  if (file.bad()) return Status(Code::kSystem, "cannot read " + path);
  return history;
}

}  // namespace rdmacc
