#include "rdma/bootstrap/cluster_config.h"

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "rdma/base/shared_object.h"

namespace rdmacc {
namespace {

constexpr size_t kConfigBytesMax = 256 * 1024;
constexpr size_t kNodesMax = 1024;
constexpr uint64_t kMemoryMbMax = 1ull << 24;
// A member list travels in messages of bounded length.
constexpr uint64_t kWorkersMax = 32'768;

Status invalid(std::string what) { return Status(Code::kInvalidArgument, std::move(what)); }

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

Result<uint64_t> parse_number(std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return invalid("'" + std::string(text) + "' is not a number from " + std::to_string(least) +
                   " to " + std::to_string(most));
  }
  return value;
}

Result<HostPort> parse_host_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string quoted = "'" + std::string(text) + "'";
  if (colon == std::string_view::npos || colon == 0) return invalid(quoted + " is not host:port");
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return invalid(quoted + ": an IPv6 address stands in brackets");
  }
  for (const char c : host) {
    if (c <= ' ' || c == '/' || c == '[' || c == ']' || c > '~') {
      return invalid(quoted + " is not host:port");
    }
  }
  Result<uint64_t> port = parse_number(text.substr(colon + 1), 1, 65'535);
  if (!port.ok()) return port.status();
  return HostPort{std::string(host), static_cast<uint16_t>(*port)};
}

// Takes one setting; the status says what is wrong with its value.
Status take(ClusterConfig& config, std::string_view key, std::string_view value,
            const std::string& folder) {
  Topology& topology = config.topology;
  const auto number = [&](uint64_t least, uint64_t most, auto& into) {
    Result<uint64_t> parsed = parse_number(value, least, most);
    if (!parsed.ok()) return parsed.status();
    into = static_cast<std::remove_reference_t<decltype(into)>>(*parsed);
    return Status();
  };
  if (value.empty()) return invalid("there is no value");
  if (key == "name") {
    config.name = std::string(value);
    return Status();
  }
  if (key == "nodes") {
    Result<std::vector<HostPort>> nodes = parse_node_list(value);
    if (!nodes.ok()) return nodes.status();
    config.nodes = std::move(*nodes);
    topology.nodes = static_cast<NodeId>(config.nodes.size());
    return Status();
  }
  if (key == "secret_file") {
    config.secret_file = std::string(value);
    if (value.front() != '/' && !folder.empty())
      config.secret_file = folder + "/" + std::string(value);
    return Status();
  }
  if (key == "threads_per_node") return number(1, 64, topology.threads_per_node);
  if (key == "workers_max") return number(1, kWorkersMax, topology.workers_max);
  if (key == "memory_mb") {
    RDMACC_RETURN_IF_ERROR(number(1, kMemoryMbMax, topology.region_bytes));
    topology.region_bytes <<= 20;
    return Status();
  }
  if (key == "durability") {
    if (value != "disk" && value != "memory") return invalid("must be disk or memory");
    return Status();  // parse_cluster_config() looks at it
  }
  if (key == "data_dir") {
    config.data_dir = std::string(value);
    if (value.front() != '/' && !folder.empty()) config.data_dir = folder + "/" + config.data_dir;
    return Status();
  }
  if (key == "checkpoint_log_mb") {
    RDMACC_RETURN_IF_ERROR(number(1, kMemoryMbMax, config.checkpoint_log_bytes));
    config.checkpoint_log_bytes <<= 20;
    return Status();
  }
  return invalid("there is no such setting");
}

}  // namespace

Result<std::vector<HostPort>> parse_node_list(std::string_view text) {
  std::vector<HostPort> nodes;
  while (true) {
    const size_t comma = text.find(',');
    Result<HostPort> node = parse_host_port(trim(text.substr(0, comma)));
    if (!node.ok()) return node.status();
    nodes.push_back(std::move(*node));
    if (nodes.size() > kNodesMax)
      return invalid("more than " + std::to_string(kNodesMax) + " nodes");
    if (comma == std::string_view::npos) return nodes;
    text.remove_prefix(comma + 1);
  }
}

Result<ClusterConfig> parse_cluster_config(std::string_view text, const std::string& folder) {
  ClusterConfig config;
  std::set<std::string, std::less<>> seen;
  bool on_disk = false;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    row = trim(row.substr(0, row.find('#')));
    if (row.empty()) continue;
    const std::string where = "line " + std::to_string(line) + ": ";
    const size_t equals = row.find('=');
    if (equals == std::string_view::npos) return invalid(where + "expected key = value");
    const std::string key(trim(row.substr(0, equals)));
    if (!seen.insert(key).second) return invalid(where + key + " is set twice");
    const Status taken = take(config, key, trim(row.substr(equals + 1)), folder);
    if (!taken.ok()) return invalid(where + key + ": " + taken.message());
    if (key == "durability") on_disk = trim(row.substr(equals + 1)) == "disk";
  }
  for (const char* key : {"name", "nodes", "secret_file"}) {
    if (!seen.contains(key)) return invalid(std::string(key) + " is missing");
  }
  if (on_disk != !config.data_dir.empty()) {
    return invalid(on_disk ? "durability = disk: data_dir is missing"
                           : "data_dir: it is for durability = disk");
  }
  RDMACC_RETURN_IF_ERROR(check_cluster_config(config));
  return config;
}

Result<ClusterConfig> read_cluster_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return invalid(path + ": cannot be read");
  std::string text(kConfigBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kConfigBytesMax) return invalid(path + ": too long for a config file");
  const size_t slash = path.rfind('/');
  Result<ClusterConfig> config = parse_cluster_config(
      text, slash == std::string::npos ? std::string(".") : path.substr(0, slash));
  if (!config.ok()) return invalid(path + ": " + config.status().message());
  return config;
}

Status check_cluster_config(const ClusterConfig& config) {
  const Topology& topology = config.topology;
  if (!cluster_name_valid(config.name)) return invalid("name: must be [A-Za-z0-9_-]{1,64}");
  if (config.nodes.empty() || config.nodes.size() > kNodesMax ||
      config.nodes.size() != topology.nodes) {
    return invalid("nodes: there must be 1 .. " + std::to_string(kNodesMax));
  }
  std::set<std::pair<std::string, uint16_t>> addresses;
  for (const HostPort& node : config.nodes) {
    if (node.port == 0 || node.host.empty()) return invalid("nodes: host or port is missing");
    if (!addresses.emplace(node.host, node.port).second) {
      return invalid("nodes: " + node.host + ":" + std::to_string(node.port) +
                     " stands there twice");
    }
  }
  if (config.secret_file.empty()) return invalid("secret_file: there must be one");
  const uint64_t node_workers = uint64_t{topology.nodes} * topology.threads_per_node;
  if (topology.threads_per_node == 0 || topology.workers_max < node_workers ||
      topology.workers_max > kWorkersMax) {
    return invalid("workers_max: must be " + std::to_string(node_workers) + " .. " +
                   std::to_string(kWorkersMax) + " for " + std::to_string(node_workers) +
                   " node threads");
  }
  if (topology.region_bytes == 0 || topology.region_bytes % 8 != 0 ||
      topology.region_bytes > kMemoryMbMax << 20) {
    return invalid("memory_mb: out of range");
  }
  return Status();
}

}  // namespace rdmacc
