#include "engine/workloads/workload.h"

#include <algorithm>

namespace rdmacc {

Status Workload::create_tables(Session& session, TableOwner owner) {
  std::vector<TableId> created;
  for (TableSpec spec : table_specs()) {
    spec.system_id = owner.system_id;
    spec.database = owner.database;
    Result<TableMeta> meta = session.create_table(spec);
    if (meta.status().code() == Code::kDuplicateKey) {
      const Result<TableMeta> earlier = session.find_table(spec);
      if (!earlier.ok()) return earlier.status();
      RDMACC_RETURN_IF_ERROR(session.drop_table(earlier.value().id));
      meta = session.create_table(spec);
    }
    if (!meta.ok()) return meta.status();
    created.push_back(meta.value().id);
  }
  bind_tables(created);
  return Status();
}

Status Workload::drop_tables(Session& session) const {
  Status status;
  for (const TableId table : tables_) {
    const Status dropped = session.drop_table(table);
    if (status.ok()) status = dropped;
  }
  return status;
}

void Workload::bind_tables(std::span<const TableId> tables) {
  CHECK(tables.size() == table_specs().size());
  tables_.assign(tables.begin(), tables.end());
}

Status Workload::attempt(Session& session, const TxnOptions& options, const TxnInputs& inputs,
                         TxnEffect& effect) const {
  effect = TxnEffect();
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, execute(session, inputs, effect)));
  if (effect.rollback) {
    effect.delta = 0;
    session.abort();
    return Status();
  }
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  return effect.doubt.empty() ? Status() : Status(Code::kCorrupt, effect.doubt);
}

TableSpec native_table(uint32_t number, uint64_t record_size, uint32_t history) {
  CHECK(record_size <= kRecordInlineMax);
  TableSpec spec;
  spec.relfilenode = number;
  spec.record_size = static_cast<uint32_t>(record_size);
  spec.history = history;
  return spec;
}

Status abort_unless_ok(Session& session, Status status) {
  if (!status.ok() && session.active()) session.abort();
  return status;
}

Status unless_it_lost(Session& session, Status status) {
  if (status.code() != Code::kCorrupt) return status;
  RDMACC_RETURN_IF_ERROR(session.check_reads());
  return status;
}

Status retry_aborted(Scheduler& scheduler, const std::function<Status()>& attempt) {
  constexpr uint32_t kPauseBitsMax = 12;
  Status status;
  for (uint32_t i = 0; i < kAttemptsMax; ++i) {
    status = attempt();
    if (status.code() != Code::kAborted) return status;
    const uint64_t pause_us = uint64_t{1} << std::min(i, kPauseBitsMax);
    scheduler.sleep_for(scheduler.endpoint().random().below(pause_us));
  }
  return status;
}

Status for_each_row(Session& session, TableId table,
                    const std::function<Status(const RowView& row)>& visit, ScanWants wants) {
  Result<ScanHandle> cursor = session.scan(table, kEveryCommand, ScanMode::kSerializable, wants);
  if (!cursor.ok()) return cursor.status();
  std::vector<RowView> batch;
  do {
    RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
    for (const RowView& row : batch) RDMACC_RETURN_IF_ERROR(visit(row));
  } while (!batch.empty());
  return Status();
}

}  // namespace rdmacc
