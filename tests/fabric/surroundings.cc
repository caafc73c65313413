#include "tests/fabric/surroundings.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace rdmacc {

std::string unique_cluster() {
  static std::atomic<int> number = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

std::string verbs_device(size_t member) {
  const char* const listed = getenv("VERBS_DEVICES");
  if (listed == nullptr) return "";
  std::vector<std::string> devices;
  std::istringstream in(listed);
  for (std::string device; std::getline(in, device, ',');) devices.push_back(device);
  return devices.empty() ? "" : devices[member % devices.size()];
}

}  // namespace rdmacc
