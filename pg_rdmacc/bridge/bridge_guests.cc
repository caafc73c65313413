// Guests of engine_bridge.h: sessions that read for another session's transaction.
#include "engine/protocols/registry.h"
#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

using rdmacc::Status;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::no_throw;
using rdmacc::bridge::set_error;
using rdmacc::bridge::start;

bool bridge_may_host(int protocol, int stages) {
  const auto asked =
      protocol < 0 ? rdmacc::Protocol::kOcc : static_cast<rdmacc::Protocol>(protocol);
  const rdmacc::StagePlan plan(static_cast<uint16_t>(stages));
  return rdmacc::may_have_guests(asked) && !plan.asks_owners(rdmacc::Stage::kRead);
}

void bridge_start_host(uint32_t table, rdmacc::HostTicket* ticket) {
  CHECK(table != rdmacc::kNoTable && ticket != nullptr);
  *ticket = {};
  start([=](rdmacc::Session& session) {
    if (!session.may_host()) return Status();
    const rdmacc::Result<rdmacc::HostTicket> given = session.host(table);
    if (given.ok()) *ticket = given.value();
    return given.status();
  });
}

void bridge_start_guest(const rdmacc::HostTicket* ticket) {
  Attachment* at = attached();
  CHECK(ticket != nullptr && ticket->ctts != 0 && !bridge_txn_active());
  start([=, host = *ticket](rdmacc::Session& session) {
    RDMACC_RETURN_IF_ERROR(session.begin_as_guest(host));
    at->txn = {};
    at->txn.active = at->txn.begun = true;
    at->txn.protocol = static_cast<rdmacc::Protocol>(host.protocol);
    at->txn.plan = rdmacc::StagePlan(host.stages);
    return Status();
  });
}

bool bridge_bytes_to_lend(size_t* bytes) {
  CHECK(bridge_txn_touched() && !bridge_busy() && bytes != nullptr);
  return no_throw([&] { *bytes = attached()->session->bytes_to_lend(); });
}

bool bridge_lend(void* to) {
  CHECK(bridge_txn_touched() && !bridge_busy());
  return no_throw([&] { attached()->session->lend(static_cast<std::byte*>(to)); });
}

void bridge_borrow(const void* lent, size_t bytes) {
  CHECK(bridge_txn_touched() && !bridge_busy());
  no_throw([&] {
    set_error(attached()->session->borrow({static_cast<const std::byte*>(lent), bytes}));
  });
}
