#pragma once
#include <string>

#include "rdma/bootstrap/membership.h"

namespace rdmacc {

// The files of a cluster whose nodes are processes of this host, in a folder that only this user
// may enter: `config`, with free ports of the loopback address, and `secret`, drawn anew.
class LoopbackFiles {
 public:
  // Replaces what is there. The folder is made if it is missing; kInvalidArgument if others may
  // enter it or it belongs to another user.
  static Status make(const std::string& folder, const std::string& name, const Topology& topology);
  static std::string config_path(const std::string& folder) { return folder + "/config"; }
  // Removes files and folder; harmless when they are gone.
  static void remove(const std::string& folder);
};

}  // namespace rdmacc
