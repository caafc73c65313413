// rdmacc_ledger: clients that count, against a running cluster, and what its tables say of them.
//
//   rdmacc_ledger CONFIG write CLIENTS PROTOCOL STAGES
//       a line "CLIENT NUMBER" for each commit that was acknowledged, until it is killed
//   rdmacc_ledger CONFIG prepare CLIENTS PROTOCOL STAGES
//       as write, in two phases: a line "CLIENT NUMBER XID", which decides that XID commits,
//       between them. What has none aborts, which some do that were prepared
//   rdmacc_ledger CONFIG decide XID...
//       what is in doubt commits if it is among these, and aborts otherwise, a line "XID" for each;
//       until nothing is in doubt and nodes have their rows, or they do not answer (exit code 1)
//   rdmacc_ledger CONFIG read
//       a line "KEY CLIENT VALUE" for each row
//
// The transaction of a client's number n writes n into two of its rows, inserts its row n and
// deletes its row n - 1: so after any crash both rows have one number, and just that row is there.

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>

#include "engine/protocols/registry.h"
#include "engine/workloads/number_key.h"
#include "engine/workloads/workload.h"
#include "rdma/bootstrap/cluster_config.h"
#include "rdma/open/open_fabric.h"

namespace rdmacc {
namespace {

constexpr uint32_t kTableNumber = 9001;
constexpr uint64_t kRowOfNumber = 1ull << 32;  // keys from there on are rows of numbers
constexpr uint64_t kKeysPerClient = 1ull << 40;
constexpr uint32_t kClientsMax = 64;
constexpr uint64_t kSystem = 9001;  // of all XIDs
constexpr size_t kLongRowBytes = 1500;
constexpr uint64_t kPauseUs = 10'000;
constexpr int kPausesMax = 3000;  // half a minute

std::string key_of(uint64_t client, uint64_t number) {
  const NumberKey key(client * kKeysPerClient + number);
  return std::string(std::string_view(key));
}

// The longer ones take a block of their own.
std::string row_of(uint64_t number, size_t bytes = 100) {
  std::string row(bytes, static_cast<char>('a' + number % 26));
  std::memcpy(row.data(), &number, sizeof(number));
  return row;
}

uint64_t number_in(std::string_view row) {
  uint64_t number = 0;
  CHECK(row.size() >= sizeof(number));
  std::memcpy(&number, row.data(), sizeof(number));
  CHECK(row == row_of(number, row.size()));  // the whole row is of one transaction
  return number;
}

Status run_one(Session& session, TableId table, uint64_t client, uint64_t& number) {
  RowView first, second;
  RDMACC_RETURN_IF_ERROR(session.get(table, key_of(client, 0), first));
  number = first.found ? number_in(first.row) + 1 : 1;
  const bool begins = !first.found;
  RDMACC_RETURN_IF_ERROR(session.get(table, key_of(client, 1), second));
  if (begins) {
    RDMACC_RETURN_IF_ERROR(session.insert(table, key_of(client, 0), row_of(number)));
    RDMACC_RETURN_IF_ERROR(session.insert(table, key_of(client, 1), row_of(number, kLongRowBytes)));
  } else {
    RDMACC_RETURN_IF_ERROR(session.put(table, key_of(client, 0), row_of(number)));
    RDMACC_RETURN_IF_ERROR(session.put(table, key_of(client, 1), row_of(number, kLongRowBytes)));
    RDMACC_RETURN_IF_ERROR(session.remove(table, key_of(client, kRowOfNumber + number - 1)));
  }
  return session.insert(table, key_of(client, kRowOfNumber + number), row_of(number));
}

using Commit = Status (*)(Session& session, uint64_t client, uint64_t number);

Status commit_and_tell(Session& session, uint64_t client, uint64_t number) {
  RDMACC_RETURN_IF_ERROR(session.commit());
  std::printf("%llu %llu\n", static_cast<unsigned long long>(client),
              static_cast<unsigned long long>(number));
  std::fflush(stdout);
  return Status();
}

// XIDs are never used again: clients are less than their factor, and time goes on.
Status decide_and_commit(Session& session, uint64_t client, uint64_t number) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const uint64_t xid = static_cast<uint64_t>(now_us) * kClientsMax + client;
  RDMACC_RETURN_IF_ERROR(session.prepare(Gtid{kSystem, xid}));
  if (now_us % 4 == 0) {
    session.abort();
    return Status(Code::kAborted);
  }
  std::printf("%llu %llu %llu\n", static_cast<unsigned long long>(client),
              static_cast<unsigned long long>(number), static_cast<unsigned long long>(xid));
  std::fflush(stdout);
  return session.commit_prepared();
}

Status decide_all(Session& session, const std::set<uint64_t>& committed) {
  while (true) {
    Result<InDoubtList> list = session.in_doubt();
    if (!list.ok()) return list.status();
    if (list->unresolved == 0 && list->transactions.empty()) return Status();
    for (const InDoubt& doubt : list->transactions) {
      if (doubt.decided) continue;
      CHECK(doubt.gtid.system_id == kSystem);
      const uint64_t xid = doubt.gtid.xid;
      if (!session.decide(doubt.gtid, committed.contains(xid)).ok()) continue;
      std::printf("%llu\n", static_cast<unsigned long long>(xid));
    }
    session.scheduler().sleep_for(kPauseUs);
  }
}

void write_for_ever(Coordinator& coordinator, TableId table, uint64_t client,
                    const TxnOptions& options, Commit commit) {
  Session session(coordinator);
  while (true) {
    uint64_t number = 0;
    Status status = session.begin(options);
    if (status.ok()) status = run_one(session, table, client, number);
    if (status.ok()) {
      status = commit(session, client, number);
    } else {
      session.abort();
    }
    if (!status.ok() && status.code() != Code::kAborted) {
      std::fprintf(stderr, "client %llu: %s\n", static_cast<unsigned long long>(client),
                   status.to_string().c_str());
      coordinator.worker().scheduler().sleep_for(kPauseUs);
    }
  }
}

Status read_all(Session& session, TableId table) {
  return retry_aborted(session.scheduler(), [&] {
    std::string lines;
    RDMACC_RETURN_IF_ERROR(session.begin(TxnOptions{}));
    const Status read = for_each_row(session, table, [&](const RowView& row) {
      const uint64_t key = NumberKey::number_of(row.key);
      lines += std::to_string(key % kKeysPerClient) + " " + std::to_string(key / kKeysPerClient) +
               " " + std::to_string(number_in(row.row)) + "\n";
      return Status();
    });
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, read));
    RDMACC_RETURN_IF_ERROR(session.commit());
    std::fputs(lines.c_str(), stdout);
    return Status();
  });
}

// Nodes that get their rows back from disk have no tables until then.
Result<TableId> find_or_make(Session& session) {
  const TableSpec spec = native_table(kTableNumber, 128, 3);
  for (int pauses = 0;; ++pauses) {
    Result<TableMeta> found = session.find_table(spec);
    if (!found.ok() && found.status().code() == Code::kNotFound) found = session.create_table(spec);
    if (found.ok()) return found->id;
    if (found.status().code() != Code::kUnavailable || pauses == kPausesMax) return found.status();
    session.scheduler().sleep_for(kPauseUs);
  }
}

int run(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[2] : "";
  const bool writes = argc == 6 && (what == "write" || what == "prepare");
  if (!writes && !(argc == 3 && what == "read") && what != "decide") return 2;
  std::set<uint64_t> committed;
  for (int i = 3; i < argc && what == "decide"; ++i) {
    uint64_t xid = 0;
    std::from_chars(argv[i], argv[i] + std::strlen(argv[i]), xid);
    committed.insert(xid);
  }
  Result<ClusterConfig> config = read_cluster_config(argv[1]);
  if (!config.ok()) return 2;
  FabricChoice choice = FabricChoice::remote(FabricKind::kTcp, std::move(*config));
  Result<std::unique_ptr<Fabric>> fabric = open_fabric(choice);
  if (!fabric.ok()) return 1;
  Result<std::unique_ptr<Endpoint>> endpoint = (*fabric)->join();
  if (!endpoint.ok()) return 1;
  Coordinator coordinator(std::move(*endpoint), (*fabric)->topology(), EngineOptions{});
  Scheduler& scheduler = coordinator.worker().scheduler();
  bool ended = false;
  Status status;
  TxnOptions options;
  uint32_t clients = 0;
  if (writes) {
    const std::optional<Protocol> protocol = parse_protocol(argv[4]);
    Result<StagePlan> plan = StagePlan::parse(argv[5]);
    if (!protocol || !plan.ok()) return 2;
    options.protocol = *protocol;
    options.plan = *plan;
    std::from_chars(argv[3], argv[3] + std::strlen(argv[3]), clients);
    if (clients == 0 || clients > kClientsMax) return 2;
  }
  CHECK(scheduler.spawn([&] {
    Session session(coordinator);
    if (what == "decide") {
      status = decide_all(session, committed);
      ended = true;
      return;
    }
    Result<TableId> table = find_or_make(session);
    status = table.status();
    if (status.ok() && !writes) status = read_all(session, *table);
    const Commit commit = what == "prepare" ? decide_and_commit : commit_and_tell;
    for (uint64_t client = 0; status.ok() && client < clients; ++client) {
      CHECK(scheduler.spawn([&coordinator, id = *table, client, options, commit] {
        write_for_ever(coordinator, id, client, options, commit);
      }));
    }
    ended = !writes || !status.ok();
  }));
  scheduler.run_until([&ended] { return ended; });
  if (!status.ok()) std::fprintf(stderr, "rdmacc_ledger: %s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace rdmacc

int main(int argc, char** argv) { return rdmacc::run(argc, argv); }
