// Two phases, and transactions in doubt: the part of engine_bridge.h about them.
#include "engine/protocols/registry.h"
#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

using rdmacc::Gtid;
using rdmacc::Session;
using rdmacc::Status;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::end_transaction;
using rdmacc::bridge::set_plain_error;

bool bridge_can_prepare(int protocol) {
  if (!bridge_protocol_available(protocol)) return false;
  return !rdmacc::executes_procedures(static_cast<rdmacc::Protocol>(protocol));
}

bool bridge_locks_what_it_reads(int protocol) {
  return bridge_protocol_available(protocol) &&
         rdmacc::locks_what_it_reads(static_cast<rdmacc::Protocol>(protocol));
}

bool bridge_reads_as_of_time(int protocol) {
  return bridge_protocol_available(protocol) &&
         rdmacc::happens_at_ctts(static_cast<rdmacc::Protocol>(protocol));
}

bool bridge_finds_its_time(int protocol) {
  return bridge_protocol_available(protocol) &&
         rdmacc::happens_at_logical_time(static_cast<rdmacc::Protocol>(protocol));
}

// An outcome is never unknown here: what is prepared is decided by the session that prepared it.
void bridge_start_prepare(uint64_t system_id, uint64_t xid) {
  CHECK(system_id != 0 && xid != 0);  // 0 is what a log without a gtid has
  Attachment* at = attached();
  if (at == nullptr || !at->txn.active || !at->txn.begun) {
    if (at != nullptr) end_transaction(*at);
    set_plain_error(rdmacc::Code::kOk, "");
    return;
  }
  rdmacc::bridge::start([at, system_id, xid](Session& session) {
    CHECK(!session.prepared());
    Status status = rdmacc::bridge::flush_indexes_to_commit(session);
    if (status.ok()) {
      status = session.prepare(Gtid{system_id, xid});
    } else {
      session.abort();
    }
    at->writes.clear();
    if (session.prepared()) {
      for (const rdmacc::LoggedWrite& write : session.prepared_writes()) {
        at->writes.push_back({write.table,
                              write.deleted,
                              {write.key.data(), write.key.size()},
                              {write.row.data(), write.row.size()}});
      }
    }
    if (!session.active()) end_transaction(*at);
    return status;
  });
}

bool bridge_prepared(void) {
  return bridge_txn_active() && attached()->txn.begun && attached()->session->prepared();
}

size_t bridge_prepared_writes(const BridgeWrite** writes) {
  CHECK(bridge_prepared());
  *writes = attached()->writes.data();
  return attached()->writes.size();
}

void bridge_start_commit_prepared(void) {
  CHECK(bridge_prepared());
  Attachment* at = attached();
  rdmacc::bridge::start([at](Session& session) {
    const Status status = session.commit_prepared();
    end_transaction(*at);
    return status;
  });
}

void bridge_detach_uncleanly(void) { rdmacc::bridge::detach_uncleanly(); }

void bridge_start_in_doubt(void) {
  rdmacc::bridge::start([](Session& session) -> Status {
    Attachment& at = *attached();
    at.in_doubt.clear();
    at.unresolved = 0;
    auto list = session.in_doubt();
    if (!list.ok()) return list.status();
    const uint64_t now_us = at.coordinator->worker().endpoint().now_us();
    for (const rdmacc::InDoubt& doubt : list->transactions) {
      const uint64_t since_us = doubt.stamp >> 16;
      at.in_doubt.push_back(
          {.system_id = doubt.gtid.system_id,
           .xid = doubt.gtid.xid,
           .worker = doubt.worker,
           .node = doubt.node,
           .decided = doubt.decided,
           .age_us = since_us <= now_us ? static_cast<int64_t>(now_us - since_us) : -1});
    }
    at.unresolved = list->unresolved;
    return Status();
  });
}

size_t bridge_in_doubt(const BridgeInDoubt** transactions, uint64_t* unresolved) {
  const Attachment* at = attached();
  *transactions = at != nullptr ? at->in_doubt.data() : nullptr;
  *unresolved = at != nullptr ? at->unresolved : 0;
  return at != nullptr ? at->in_doubt.size() : 0;
}

void bridge_start_decide(uint64_t system_id, uint64_t xid, bool commit) {
  rdmacc::bridge::start([system_id, xid, commit](Session& session) {
    return session.decide(Gtid{system_id, xid}, commit);
  });
}
