#include "engine/storage/wire/storage_client.h"

#include <algorithm>
#include <map>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/wire/message_stream.h"
#include "engine/storage/wire/storage_messages.h"

namespace rdmacc {

namespace {

Rpc::Call call_to(const Topology& topology, NodeId node, MethodId method) {
  Rpc::Call call;
  call.to = topology.worker_of(node);
  call.method = method;
  return call;
}

Status first_error(std::span<const Rpc::Call> calls) {
  for (const Rpc::Call& call : calls) {
    if (!call.status.ok()) return call.status;
  }
  return Status();
}

Status bad_reply(NodeId node) {
  return Status(Code::kCorrupt, "node " + std::to_string(node) + ": malformed reply");
}

}  // namespace

Status StorageClient::allocate(std::span<SlotRequest> requests, uint64_t ctts,
                               VerbCounters& counters) {
  CHECK(ctts != 0);
  if (requests.empty()) return Status();
  Status malformed;
  std::vector<AllocateReplyItem> items;
  // Now, so that no answer is lost for a lack of memory, and with it what a node has locked.
  items.reserve(std::min<size_t>(requests.size(), kItemsPerMessage));
  const auto take = [&](const SentMessage<AllocateRequest>& sent) {
    if (!parse_allocate_reply(sent.call.reply, sent.from.size(), &items)) {
      malformed = bad_reply(sent.node);
      return;
    }
    for (size_t k = 0; k < items.size(); ++k) {
      SlotRequest& request = requests[sent.from[k]];
      const bool lacks = (request.want_slot && items[k].slot == 0) ||
                         (request.overflow_bytes != 0 && items[k].block == 0);
      if (lacks) malformed = bad_reply(sent.node);
      if (items[k].slot != 0) request.slot = GlobalAddress::make(sent.node, items[k].slot);
      if (items[k].block != 0) request.overflow = GlobalAddress::make(sent.node, items[k].block);
      request.incarnation = items[k].incarnation;
      request.wts = items[k].wts;
      request.lease = items[k].lease;
    }
  };
  Rpc::Call like;
  like.method = kMethodAllocate;
  MessageStream<AllocateRequest, decltype(take)> stream(worker_, topology_, like, ctts, counters,
                                                        take);
  for (SlotRequest& request : requests) request.slot = request.overflow = GlobalAddress{};
  for (size_t i = 0; i < requests.size(); ++i) {
    const SlotRequest& request = requests[i];
    stream.add(
        request.node,
        AllocateItem{request.table, request.key_hash, request.overflow_bytes, request.want_slot},
        i);
  }
  Status status = stream.finish();
  if (status.ok()) status = malformed;
  if (status.ok()) return status;
  std::vector<FreeRequest> got;
  for (SlotRequest& request : requests) {
    if (!request.slot.null()) got.push_back({request.slot, FreeKind::kSlot});
    if (!request.overflow.null()) got.push_back({request.overflow, FreeKind::kOverflow});
    request.slot = request.overflow = GlobalAddress{};
  }
  static_cast<void>(free(got, ctts, counters));
  return status;
}

Status StorageClient::reserve_slots(NodeId node, TableId table, uint32_t count, uint64_t tag,
                                    std::vector<SlotRequest>& slots, VerbCounters& counters) {
  CHECK(node < topology_.nodes && count > 0 && count <= kReservedSlotsMax);
  Rpc::Call call = call_to(topology_, node, kMethodReserveSlots);
  ReserveRequest{table, count, tag}.write(call.request);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  std::vector<AllocateReplyItem> items;
  if (!parse_allocate_reply(call.reply, count, &items)) return bad_reply(node);
  const RegionLayout layout(topology_);
  for (const AllocateReplyItem& item : items) {
    if (!layout.holds_header(item.slot)) return bad_reply(node);
  }
  for (const AllocateReplyItem& item : items) {
    SlotRequest& slot = slots.emplace_back();
    slot.table = table;
    slot.node = node;
    slot.slot = GlobalAddress::make(node, item.slot);
    slot.incarnation = item.incarnation;
    slot.wts = item.wts;
    slot.lease = item.lease;
  }
  return Status();
}

Status StorageClient::free(std::span<const FreeRequest> requests, uint64_t ctts,
                           VerbCounters& counters, bool patient) {
  Rpc::Call like;
  like.method = kMethodFree;
  like.patient = patient;
  const auto nothing_to_take = [](const SentMessage<FreeMessage>&) {};
  MessageStream<FreeMessage, decltype(nothing_to_take)> stream(worker_, topology_, like, ctts,
                                                               counters, nothing_to_take);
  for (const FreeRequest& request : requests) {
    stream.add(request.address.node(), FreeItem{request.address.offset(), request.kind});
  }
  return stream.finish();
}

Status StorageClient::extend_bucket(GlobalAddress group, uint32_t bucket, uint32_t entries,
                                    uint64_t ctts, VerbCounters& counters) {
  CHECK(group.node() < topology_.nodes);
  Rpc::Call call = call_to(topology_, group.node(), kMethodExtendBucket);
  ExtendRequest{group.offset(), bucket, entries, ctts}.write(call.request);
  return worker_.rpc().call_one(call, counters);
}

Status StorageClient::split_soon(std::span<const GlobalAddress> groups, VerbCounters& counters,
                                 Patience patience) {
  CHECK(groups.size() <= kFullGroupsMax);
  std::vector<FullGroupsMessage> by_node(topology_.nodes);
  for (const GlobalAddress group : groups) {
    CHECK(group.node() < topology_.nodes);
    by_node[group.node()].groups.push_back(group.offset());
  }
  std::vector<Rpc::Call> calls;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    if (by_node[node].groups.empty()) continue;
    Rpc::Call& call = calls.emplace_back(call_to(topology_, node, kMethodSplitSoon));
    call.silence_us_max = patience.silence_us_max;
    by_node[node].write(call.request);
  }
  worker_.rpc().call_all(calls, counters);
  return first_error(calls);
}

Status StorageClient::expect_rows(TableId table, uint64_t rows, VerbCounters& counters) {
  CHECK(table != kNoTable);
  std::vector<NodeId> nodes;
  std::vector<Rpc::Call> calls;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    nodes.push_back(node);
    MessageWriter out(calls.emplace_back(call_to(topology_, node, kMethodExpectRows)).request);
    out.u32(table);
    out.u64(rows / topology_.nodes);
  }
  worker_.rpc().call_all(calls, counters);
  RDMACC_RETURN_IF_ERROR(first_error(calls));
  return wait_for_pending_splits(nodes, counters);
}

// Node 0 comes last: a table that it knows is complete on every node. What a create that did not
// get so far leaves on other nodes is dropped here or, if the caller dies, by the identity's next
// create, or by a front end that lists TableList::kWithParts.
Result<TableMeta> StorageClient::create_table(const TableSpec& spec, VerbCounters& counters,
                                              TableId wanted) {
  Rpc::Call reserve = call_to(topology_, 0, kMethodReserveTableId);
  TableRequest{wanted, spec}.write(reserve.request);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(reserve, counters));
  MessageReader reader(reserve.reply);
  const TableId id = reader.u32();
  if (!reader.at_end()) return bad_reply(0);

  std::vector<Rpc::Call> calls;
  for (NodeId node = 1; node < topology_.nodes; ++node) {
    TableRequest{id, spec}.write(
        calls.emplace_back(call_to(topology_, node, kMethodCreateTable)).request);
  }
  if (!calls.empty()) worker_.rpc().call_all(calls, counters);
  Status status = first_error(calls);
  TableMeta meta;
  if (status.ok()) {
    Rpc::Call last = call_to(topology_, 0, kMethodCreateTable);
    TableRequest{id, spec}.write(last.request);
    status = worker_.rpc().call_one(last, counters);
    if (status.ok() && !parse_table_meta(last.reply, &meta)) status = bad_reply(0);
  }
  if (status.ok()) return meta;
  static_cast<void>(drop_table(id, counters));
  return status;
}

Status StorageClient::drop_table(TableId id, VerbCounters& counters) {
  std::vector<Rpc::Call> calls;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    MessageWriter(calls.emplace_back(call_to(topology_, node, kMethodDropTable)).request).u32(id);
  }
  // First node 0: a table that is half gone is not found any more. If the caller dies in between,
  // TableList::kWithParts has it.
  const std::span<Rpc::Call> first(calls.data(), 1), others(calls.data() + 1, calls.size() - 1);
  worker_.rpc().call_all(first, counters);
  if (!first[0].status.ok() && first[0].status.code() != Code::kNotFound) return first[0].status;
  if (!others.empty()) worker_.rpc().call_all(others, counters);
  for (const Rpc::Call& call : others) {
    if (!call.status.ok() && call.status.code() != Code::kNotFound) return call.status;
  }
  return first[0].status;
}

Result<TableMeta> StorageClient::find_table(const TableSpec& identity, VerbCounters& counters) {
  Rpc::Call call = call_to(topology_, 0, kMethodFindTable);
  TableRequest{kNoTable, identity}.write(call.request);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  TableMeta meta;
  if (!parse_table_meta(call.reply, &meta)) return bad_reply(0);
  return meta;
}

Result<std::vector<ListedTable>> StorageClient::tables_of(NodeId node, VerbCounters& counters) {
  std::vector<ListedTable> all, some;
  do {
    Rpc::Call call = call_to(topology_, node, kMethodListTables);
    MessageWriter(call.request).u32(all.empty() ? 0 : all.back().id);
    RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
    if (!parse_tables(call.reply, &some)) return bad_reply(node);
    if (!some.empty() && !all.empty() && some.front().id <= all.back().id) return bad_reply(node);
    all.insert(all.end(), some.begin(), some.end());
  } while (some.size() == kListedTablesMax);
  return all;
}

Result<std::vector<ListedTable>> StorageClient::list_tables(VerbCounters& counters,
                                                            TableList which) {
  if (which == TableList::kWhole) return tables_of(0, counters);
  std::map<TableId, ListedTable> all;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    Result<std::vector<ListedTable>> some = tables_of(node, counters);
    if (!some.ok()) return some.status();
    for (const ListedTable& table : *some) all.emplace(table.id, table);
  }
  std::vector<ListedTable> list;
  for (const auto& [id, table] : all) list.push_back(table);
  return list;
}

Result<TableSize> StorageClient::table_size(TableId id, VerbCounters& counters) {
  std::vector<Rpc::Call> calls;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    MessageWriter(calls.emplace_back(call_to(topology_, node, kMethodTableSize)).request).u32(id);
  }
  worker_.rpc().call_all(calls, counters);
  RDMACC_RETURN_IF_ERROR(first_error(calls));
  TableSize total;
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    TableSize part;
    if (!parse_table_size(calls[node].reply, &part)) return bad_reply(node);
    total.rows += part.rows;
    total.bytes += part.bytes;
    total.latest_stamp = std::max(total.latest_stamp, part.latest_stamp);
    total.locked += part.locked;
  }
  return total;
}

Status StorageClient::wait_for_pending_splits(std::span<const NodeId> nodes, VerbCounters& counters,
                                              int rounds_max, Patience patience) {
  std::vector<NodeId> splitting(nodes.begin(), nodes.end());
  for (int round = 0; round < rounds_max && !splitting.empty(); ++round) {
    if (patience.cancelled != nullptr && *patience.cancelled) return Status(Code::kCancelled);
    std::vector<Rpc::Call> calls;
    for (const NodeId node : splitting) {
      calls.push_back(call_to(topology_, node, kMethodWaitForPendingSplits));
      calls.back().silence_us_max = patience.silence_us_max;
    }
    worker_.rpc().call_all(calls, counters);
    RDMACC_RETURN_IF_ERROR(first_error(calls));
    std::vector<NodeId> more;
    for (size_t i = 0; i < calls.size(); ++i) {
      MessageReader in(calls[i].reply);
      if (in.u8() != 0) more.push_back(splitting[i]);
      if (!in.at_end()) return bad_reply(splitting[i]);
    }
    splitting = std::move(more);
  }
  return Status();
}

Result<NodeStatistics> StorageClient::statistics(NodeId node, VerbCounters& counters,
                                                 Patience patience) {
  CHECK(node < topology_.nodes);
  Rpc::Call call = call_to(topology_, node, kMethodNodeStatistics);
  call.cancelled = patience.cancelled;
  call.silence_us_max = patience.silence_us_max;
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  NodeStatistics statistics{};
  if (!parse_statistics(call.reply, &statistics)) return bad_reply(node);
  return statistics;
}

Status StorageClient::reserve_blocks(NodeId node, uint32_t block_bytes, uint32_t count,
                                     std::vector<GlobalAddress>& blocks, VerbCounters& counters) {
  CHECK(node < topology_.nodes && count <= kReservedBlocksMax);
  Rpc::Call call = call_to(topology_, node, kMethodReserveBlocks);
  MessageWriter request(call.request);
  request.u32(block_bytes);
  request.u32(count);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  const size_t got = call.reply.size() / sizeof(uint64_t);
  if (got == 0 || got > count) return bad_reply(node);
  MessageReader in(call.reply);
  for (size_t i = 0; i < got; ++i) {
    const uint64_t offset = in.u64();
    const bool possible = offset % 64 == 0 && offset != 0 && offset < topology_.region_bytes &&
                          block_bytes + sizeof(OverflowHeader) < topology_.region_bytes - offset;
    if (!possible) return bad_reply(node);
    blocks.push_back(GlobalAddress::make(node, offset));
  }
  return in.at_end() ? Status() : bad_reply(node);
}

Result<bool> StorageClient::back_log_ring(NodeId node, VerbCounters& counters) {
  CHECK(node < topology_.nodes);
  Rpc::Call call = call_to(topology_, node, kMethodBackLogRing);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  MessageReader in(call.reply);
  const uint8_t on_disk = in.u8();
  if (!in.at_end() || on_disk > 1) return bad_reply(node);
  return on_disk == 1;
}

Result<AuditReport> StorageClient::audit(NodeId node, TableId table, VerbCounters& counters) {
  CHECK(node < topology_.nodes);
  Rpc::Call call = call_to(topology_, node, kMethodAudit);
  MessageWriter(call.request).u32(table);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  AuditReport report;
  if (!report.parse(call.reply)) return bad_reply(node);
  return report;
}

Result<LockedHeaders> StorageClient::locked_headers(NodeId node, uint64_t from,
                                                    VerbCounters& counters, Patience patience) {
  CHECK(node < topology_.nodes);
  Rpc::Call call = call_to(topology_, node, kMethodLockedHeaders);
  call.cancelled = patience.cancelled;
  call.silence_us_max = patience.silence_us_max;
  MessageWriter(call.request).u64(from);
  RDMACC_RETURN_IF_ERROR(worker_.rpc().call_one(call, counters));
  LockedHeaders locked;
  const bool parsed = parse_locked_headers(call.reply, &locked);
  if (!parsed || (locked.next != 0 && locked.next <= from)) return bad_reply(node);
  return locked;
}

}  // namespace rdmacc
