#pragma once
#include <string>

// What a test finds around it.

namespace rdmacc {

// A cluster name that no other test process uses.
std::string unique_cluster();
// The RDMA device of the member with this number, by VERBS_DEVICES ("rxe0,rxe1": members take
// turns); "" when nothing is said.
std::string verbs_device(size_t member);

}  // namespace rdmacc
