#include "engine/storage/wire/posted_load.h"

#include <algorithm>

#include "engine/storage/wire/messages.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// One message, and where its rows are in the caller's list.
struct Batch {
  NodeId node = 0;
  size_t bytes = 0;
  LoadRowsMessage message;
  std::vector<size_t> from;
};

std::vector<Batch> batches_of(const LoadedRows& load, std::span<const RowToLoad> rows,
                              NodeId nodes) {
  std::vector<Batch> batches;
  std::vector<size_t> open(nodes, SIZE_MAX);  // of each node, the last one
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].node < nodes);
    const size_t bytes = kLoadedRowHead + rows[i].key.size() + rows[i].row.size();
    size_t& at = open[rows[i].node];
    if (at == SIZE_MAX || batches[at].bytes + bytes > kLoadBytesMax) {
      at = batches.size();
      batches.emplace_back().node = rows[i].node;
      batches.back().message.load = load;
    }
    batches[at].bytes += bytes;
    batches[at].message.rows.push_back(rows[i]);
    batches[at].from.push_back(i);
  }
  return batches;
}

}  // namespace

struct PostedLoad::Messages {
  std::vector<Batch> batches;
  std::vector<Rpc::Call> calls;  // one for each
  Completion completion;
};

PostedLoad::PostedLoad(Worker& worker, const Topology& topology, const LoadedRows& load,
                       std::span<const RowToLoad> rows, VerbCounters& counters)
    : worker_(worker), messages_(std::make_unique<Messages>()) {
  CHECK(load.table != kNoTable && worker.scheduler().in_coroutine());
  messages_->batches = batches_of(load, rows, topology.nodes);
  std::vector<Batch>& batches = messages_->batches;
  std::vector<Rpc::Call>& calls = messages_->calls;
  calls.resize(batches.size());
  messages_->completion.outstanding = static_cast<uint32_t>(calls.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    calls[i].to = topology.worker_of(batches[i].node);
    calls[i].method = kMethodLoadRows;
    batches[i].message.write(calls[i].request);
    batches[i].message.rows = {};  // views of what its caller keeps no longer
  }
  for (Rpc::Call& call : calls) worker.rpc().post(call, messages_->completion);
  counters.messages += calls.size();
  ++counters.round_trips;
}

PostedLoad::~PostedLoad() {
  // Its calls are known to the worker's Rpc, and are left to it.
  if (under_way()) static_cast<void>(messages_.release());
}

bool PostedLoad::under_way() const { return messages_->completion.outstanding > 0; }

void PostedLoad::await() {
  if (under_way()) worker_.scheduler().await(messages_->completion);
}

Status PostedLoad::result(size_t* duplicate) const {
  CHECK(!under_way() && duplicate != nullptr);
  size_t first = SIZE_MAX;
  for (size_t i = 0; i < messages_->calls.size(); ++i) {
    const Rpc::Call& call = messages_->calls[i];
    const Batch& batch = messages_->batches[i];
    RDMACC_RETURN_IF_ERROR(call.status);
    MessageReader in(call.reply);
    const uint32_t loaded = in.u32();
    if (!in.at_end() || loaded > batch.from.size()) {
      return Status(Code::kCorrupt,
                    "node " + std::to_string(batch.node) + ": malformed reply to a load");
    }
    if (loaded < batch.from.size()) first = std::min(first, batch.from[loaded]);
  }
  if (first == SIZE_MAX) return Status();
  *duplicate = first;
  return Status(Code::kDuplicateKey);
}

}  // namespace rdmacc
