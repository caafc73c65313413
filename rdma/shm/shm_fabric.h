#pragma once
#include <memory>
#include <optional>
#include <string>

#include "rdma/fabric/fabric.h"

// All processes of one host: every node's region is a POSIX shared memory object of mode 0600,
// and the initiator carries out one-sided verbs itself, in poll(), which prefetches the targets of
// all of them before. Datagrams go through single-producer single-consumer rings between
// each node thread and every worker; sleeping is a futex wait.
//
// Objects: /rdmacc.<cluster>.ctl (topology, worker slots, rings) and /rdmacc.<cluster>.node<k>.
// They outlive their processes, and with them the rows, until destroy().

namespace rdmacc {

struct ShmOptions {
  bool huge_pages = true;          // try; what was got is in huge_pages_used()
  uint32_t wait_us_max = 100'000;  // bound of one wait()
  // Rounds of verbs are carried out in place (Endpoint::Port::kMapped); else by chains.
  bool mapped = true;
  // A fault: pauses between verbs, drawn from this seed (verb_delays.h). Verbs are posted then.
  std::optional<uint64_t> verb_delays = std::nullopt;
};

class ShmFabric : public Fabric {
 public:
  // Creates the objects of a new cluster; kInvalidArgument if it exists, or its name is not
  // [A-Za-z0-9_-]{1,64}; kNoSpace if the control object does not fit.
  static Result<std::unique_ptr<ShmFabric>> create(const std::string& cluster,
                                                   const Topology& topology,
                                                   ShmOptions options = {});
  // Maps those of an existing one; kNotFound when there is none (yet); refuses objects of
  // another user, mode or layout version.
  static Result<std::unique_ptr<ShmFabric>> attach(const std::string& cluster,
                                                   ShmOptions options = {});
  // Removes all objects of the cluster; processes that map them keep their mappings.
  static void destroy(const std::string& cluster);
  // True once the object of `cluster` exists.
  static bool exists(const std::string& cluster);

  virtual bool huge_pages_used() const = 0;
};

}  // namespace rdmacc
