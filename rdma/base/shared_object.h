#pragma once
#include <string>

#include "rdma/base/status.h"

// POSIX shared memory objects that outlive the process that made them: their names, owner, mode
// and memory.

namespace rdmacc {

// [A-Za-z0-9_-]{1,64}: a cluster's name is part of the names of its objects.
bool cluster_name_valid(const std::string& cluster);
// Opens an existing object; kNotFound when there is none, kInvalidArgument when it belongs to
// another user or others may open it.
Result<int> shm_open_checked(const std::string& name);
// The same, of an object that is made if it is not there, with mode 0600 whatever the umask.
// Several processes may call it at the same time.
Result<int> shm_open_or_make(const std::string& name);
// posix_fallocate, again after signals; kNoSpace when there is no memory.
Status shm_back(int fd, uint64_t offset, uint64_t bytes);

}  // namespace rdmacc
