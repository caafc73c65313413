#include "pg_rdmacc/server/fabric.h"

#include "pg_rdmacc/server/guc.h"
#include "pg_rdmacc/server/shmem.h"

extern "C" {
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace {

constexpr const char* kLocalFabric = "shm";
/* The prefix makes base backups pass it by: a secret has no place in them. */
constexpr const char* kFolder = "pgsql_tmp_rdmacc";
/* Of a member list that travels in messages of bounded length. */
constexpr int kWorkersMaxByMessages = 32768;

BridgeFabric description;

bool fabric_is_local(void) { return strcmp(rdmacc_fabric, kLocalFabric) == 0; }

uint64 region_bytes(void) { return static_cast<uint64>(rdmacc_node_memory_mb) << 20; }

[[noreturn]] void refuse(const char* what, const char* hint) {
  ereport(FATAL,
          (errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg_internal("%s", what), errhint("%s", hint)));
}

void check_remote(void) {
  if (fabric_is_local()) {
    refuse("rdmacc.fabric must not be shm when rdmacc.cluster is set",
           "Set it to what the nodes' --fabric is, such as tcp.");
  }
  if (rdmacc_cluster_secret_file[0] == '\0') {
    refuse("rdmacc.cluster needs rdmacc.cluster_secret_file",
           "It names a file of mode 0600 with the secret that the nodes have.");
  }
  if (bridge_check_fabric(rdmacc_fabric_description())) return;
  ereport(FATAL, (errcode(ERRCODE_CONFIG_FILE_ERROR),
                  errmsg("the cluster of the rdmacc.cluster settings cannot be used"),
                  errdetail_internal("%s.", bridge_error()->message),
                  errhint("rdmacc.max_workers is the workers_max of the nodes' config, node "
                          "threads included; the secret file belongs to the server's user and has "
                          "mode 0600.")));
}

}  // namespace

bool rdmacc_nodes_are_remote(void) {
  return rdmacc_cluster != nullptr && rdmacc_cluster[0] != '\0';
}

const BridgeFabric* rdmacc_fabric_description(void) {
  CHECK(rdmacc_fabric != nullptr && rdmacc_worker_ids() > 0); /* the settings are defined */
  memset(&description, 0, sizeof(description));
  description.kind = rdmacc_fabric;
  description.cluster = rdmacc_cluster_name();
  description.threads_per_node = rdmacc_node_threads;
  description.workers_max = rdmacc_worker_ids();
  description.region_bytes = region_bytes();
  description.verbs_device = rdmacc_verbs_device;
  description.verbs_port = rdmacc_verbs_port;
  description.verbs_gid_index = rdmacc_verbs_gid_index;
  if (rdmacc_nodes_are_remote()) {
    description.node_list = rdmacc_cluster;
    description.secret_file = rdmacc_cluster_secret_file;
  } else if (!fabric_is_local()) {
    description.config = rdmacc_fabric_config();
  }
  return &description;
}

void rdmacc_describe_local(const char* kind, const char* name, int nodes, BridgeFabric* fabric) {
  CHECK(kind != nullptr && name != nullptr && fabric != nullptr);
  memset(fabric, 0, sizeof(*fabric));
  fabric->kind = kind;
  fabric->cluster = name;
  fabric->threads_per_node = 1;
  fabric->workers_max = RDMACC_NODES_MAX;
  fabric->region_bytes = region_bytes();
  fabric->secret_file = "none";
  /* No connection is made there. */
  static char list[RDMACC_NODES_MAX * 20];
  size_t length = 0;
  for (int node = 0; node < Min(Max(nodes, 1), RDMACC_NODES_MAX); ++node) {
    length += static_cast<size_t>(snprintf(list + length, sizeof(list) - length, "%slocalhost:%d",
                                           node == 0 ? "" : ",", node + 1));
  }
  CHECK(length > 0 && length < sizeof(list)); /* no address is cut off */
  fabric->node_list = list;
}

bool rdmacc_fabric_needs_files(void) { return !rdmacc_nodes_are_remote() && !fabric_is_local(); }

const char* rdmacc_fabric_folder(void) {
  static char path[MAXPGPATH];
  snprintf(path, sizeof(path), "%s/%s", DataDir, kFolder);
  return path;
}

const char* rdmacc_fabric_config(void) {
  static char path[MAXPGPATH];
  snprintf(path, sizeof(path), "%s/%s/config", DataDir, kFolder);
  return path;
}

void rdmacc_fabric_check_at_start(void) {
  if (rdmacc_nodes_are_remote()) {
    check_remote();
  } else if (rdmacc_cluster_secret_file[0] != '\0') {
    refuse("rdmacc.cluster_secret_file is set, but rdmacc.cluster is not",
           "Nodes that the server starts have a secret that it draws itself.");
  } else if (!fabric_is_local() && rdmacc_worker_ids() > kWorkersMaxByMessages) {
    refuse("rdmacc.max_workers is too large for this rdmacc.fabric",
           "Other fabrics than shm have at most 32768 worker ids, node threads included.");
  }
}
