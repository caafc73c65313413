#include "engine/bench/node_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "engine/node/node.h"
#include "engine/storage/layout/region_rights.h"
#include "engine/workloads/procedures.h"

namespace rdmacc {
namespace {

constexpr int kPollMs = 100;
constexpr int kReadyMsMax = 120'000;
constexpr int kEndMsMax = 5'000;

std::atomic<bool> child_stop{false};

void on_terminate(int) { child_stop.store(true); }

// A child is told to end by SIGTERM, also by the kernel when its parent is gone. Ctrl-C reaches
// it too, but ending is the parent's business.
void set_up_child(pid_t parent) {
  struct sigaction action = {};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) child_stop.store(true);
}

void tell(int fd, const std::string& text) {
  if (write(fd, text.data(), text.size()) < 0) child_stop.store(true);  // the parent is gone
}

// The child's whole life. It tells the parent "\n" when it serves, or why it cannot.
int run_child(const FabricChoice& choice, NodeId node, const NodeProcesses::Body& body, int fd) {
  try {
    Status status;
    {
      Result<std::unique_ptr<Fabric>> fabric = open_fabric_as_node(choice, node);
      status = fabric.ok() ? body(**fabric, node, child_stop, [fd] { tell(fd, "\n"); })
                           : fabric.status();
    }
    if (!status.ok()) tell(fd, status.to_string());
    // Harmless when the parent has done so or will; needed when the parent was killed.
    if (child_stop.load()) {
      destroy_cluster(choice);
      if (!choice.config.secret_file.empty()) LoopbackCluster::remove_files(choice.config);
    }
    return status.ok() ? 0 : 1;
  } catch (const std::exception& error) {
    tell(fd, error.what());
    return 1;
  }
}

// A run's cluster has a name of its own, and its folders outlive it.
DurableOptions durable_options(const std::string& data_dir, NodeId node) {
  DurableOptions options;
  options.folder = data_dir + "/node" + std::to_string(node);
  options.cluster = "rdmacc_bench";
  return options;
}

}  // namespace

Result<std::unique_ptr<NodeProcesses>> NodeProcesses::start(FabricChoice choice,
                                                            const Topology& topology,
                                                            const NodeSettings& settings,
                                                            const std::atomic<bool>& interrupted) {
  if (!settings.data_dir.empty() && mkdir(settings.data_dir.c_str(), 0700) != 0 &&
      errno != EEXIST) {
    return Status::from_errno("making the folder for rows");
  }
  choice.verbs.domains = region_domains(RegionLayout(topology));
  return start_with(
      choice, topology,
      [settings](Fabric& fabric, NodeId node, const std::atomic<bool>& stop,
                 const std::function<void()>& ready) {
        ProcedureRegistry procedures;
        add_workload_procedures(procedures, WorkloadCluster{fabric.topology().nodes, false});
        NodeOptions options;
        options.order.procedures = &procedures;
        if (!settings.data_dir.empty()) options.durable = durable_options(settings.data_dir, node);
        Result<std::unique_ptr<Node>> opened = Node::open(fabric, node, options);
        if (!opened.ok()) return opened.status();
        (*opened)->when_serving(ready);
        return (*opened)->run(stop, settings.spin_us);
      },
      interrupted);
}

Result<std::unique_ptr<NodeProcesses>> NodeProcesses::start_with(
    FabricChoice choice, const Topology& topology, const Body& body,
    const std::atomic<bool>& interrupted) {
  const std::string cluster = "bench-" + std::to_string(getpid());
  std::unique_ptr<NodeProcesses> processes(new NodeProcesses);
  choice.cluster = cluster;
  if (choice.kind != FabricKind::kShm) {
    Result<std::unique_ptr<LoopbackCluster>> loopback = LoopbackCluster::make(cluster, topology);
    if (!loopback.ok()) return loopback.status();
    processes->loopback_ = std::move(*loopback);
    choice.config = processes->loopback_->config();
  }
  processes->choice_ = std::move(choice);
  destroy_cluster(processes->choice_);  // of a killed run that had the same process number
  RDMACC_RETURN_IF_ERROR(create_cluster(processes->choice_, topology));
  for (NodeId node = 0; node < topology.nodes; ++node) {
    RDMACC_RETURN_IF_ERROR(processes->fork_node(node, body));
  }
  for (const Child& child : processes->children_) {
    RDMACC_RETURN_IF_ERROR(processes->await_ready(child, interrupted));
  }
  Result<std::unique_ptr<Fabric>> fabric = open_fabric(processes->choice_);
  if (!fabric.ok()) return fabric.status();
  processes->fabric_ = std::move(*fabric);
  return processes;
}

Status NodeProcesses::fork_node(NodeId node, const Body& body) {
  int fds[2];
  if (pipe(fds) != 0) return Status::from_errno("pipe");
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return Status::from_errno("fork");
  if (pid == 0) {
    set_up_child(parent);
    close(fds[0]);
    const int exit_code = run_child(choice_, node, body, fds[1]);
    _exit(exit_code);
  }
  close(fds[1]);
  children_.push_back({node, pid, fds[0]});
  return Status();
}

Status NodeProcesses::await_ready(const Child& child, const std::atomic<bool>& interrupted) const {
  const std::string name = "node " + std::to_string(child.node);
  std::string said;
  for (int waited_ms = 0; waited_ms < kReadyMsMax; waited_ms += kPollMs) {
    if (interrupted.load()) return Status(Code::kCancelled, "interrupted");
    pollfd poll_fd{child.ready_fd, POLLIN, 0};
    if (poll(&poll_fd, 1, kPollMs) <= 0) continue;
    char text[512];
    const ssize_t length = read(child.ready_fd, text, sizeof(text));
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) break;
    said.append(text, static_cast<size_t>(length));
    if (said.front() == '\n') return Status();
  }
  return Status(Code::kUnavailable, name + " could not start" + (said.empty() ? "" : ": " + said));
}

Status NodeProcesses::check_alive() {
  for (auto child = children_.begin(); child != children_.end(); ++child) {
    if (waitpid(child->pid, nullptr, WNOHANG) == 0) continue;
    const std::string name = "node " + std::to_string(child->node);
    close(child->ready_fd);
    children_.erase(child);  // its process number may belong to another soon
    return Status(Code::kUnavailable, name + " ended during the run");
  }
  return Status();
}

void NodeProcesses::kill_all() {
  for (const Child& child : children_) kill(child.pid, SIGKILL);
}

NodeProcesses::~NodeProcesses() {
  fabric_.reset();  // while the nodes are there to take its leave
  for (const Child& child : children_) kill(child.pid, SIGTERM);
  for (const Child& child : children_) {
    int waited_ms = 0;
    while (waitpid(child.pid, nullptr, WNOHANG) == 0) {
      if (waited_ms >= kEndMsMax) kill(child.pid, SIGKILL);
      usleep(1'000);
      ++waited_ms;
    }
    close(child.ready_fd);
  }
  destroy_cluster(choice_);
}

}  // namespace rdmacc
