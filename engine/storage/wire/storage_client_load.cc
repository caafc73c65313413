#include <algorithm>

#include "engine/storage/wire/messages.h"
#include "engine/storage/wire/storage_client.h"

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

Status StorageClient::load_rows(const LoadedRows& load, std::span<const RowToLoad> rows,
                                const bool* cancelled, VerbCounters& counters, size_t* duplicate) {
  CHECK(load.table != kNoTable && duplicate != nullptr);
  const std::vector<Batch> batches = batches_of(load, rows, topology_.nodes);
  std::vector<Rpc::Call> calls(batches.size());
  for (size_t i = 0; i < batches.size(); ++i) {
    calls[i].to = topology_.worker_of(batches[i].node);
    calls[i].method = kMethodLoadRows;
    calls[i].cancelled = cancelled;
    batches[i].message.write(calls[i].request);
  }
  worker_.rpc().call_all(calls, counters);
  size_t first = SIZE_MAX;
  for (size_t i = 0; i < batches.size(); ++i) {
    RDMACC_RETURN_IF_ERROR(calls[i].status);
    MessageReader in(calls[i].reply);
    const uint32_t loaded = in.u32();
    if (!in.at_end() || loaded > batches[i].from.size()) {
      return Status(Code::kCorrupt,
                    "node " + std::to_string(batches[i].node) + ": malformed reply to a load");
    }
    if (loaded < batches[i].from.size()) first = std::min(first, batches[i].from[loaded]);
  }
  if (first == SIZE_MAX) return Status();
  *duplicate = first;
  return Status(Code::kDuplicateKey);
}

}  // namespace rdmacc
