#pragma once
#include <string>
#include <string_view>

#include "rdma/bootstrap/membership.h"

namespace rdmacc {

// A cluster's config file, one "key = value" a line; blank lines and what follows a # count for
// nothing. The same file serves every member:
//
//   name = production
//   nodes = 10.0.0.1:7400, 10.0.0.2:7400      # by node id
//   secret_file = /etc/rdmacc/secret          # relative to the config file's folder
//   threads_per_node = 1
//   workers_max = 64
//   memory_mb = 1024                          # of each node
//   durability = disk                         # or memory, the default
//   data_dir = /var/lib/rdmacc                # of each node's host; relative as secret_file is
//   checkpoint_log_mb = 256                   # of a node's log, after which a checkpoint is made
//
// name, nodes and secret_file must be there; data_dir, too, with durability = disk. Errors name the
// line: kInvalidArgument.
Result<ClusterConfig> read_cluster_config(const std::string& path);
// `folder` is what a relative secret_file is relative to.
Result<ClusterConfig> parse_cluster_config(std::string_view text, const std::string& folder);

// "host:port, host:port"; IPv6 addresses stand in brackets.
Result<std::vector<HostPort>> parse_node_list(std::string_view text);

// What open() and open_as_node() check first.
Status check_cluster_config(const ClusterConfig& config);

}  // namespace rdmacc
