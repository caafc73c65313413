// The loads of engine_bridge.h: many rows at once, in the transaction or before it commits.
#include <algorithm>

#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

using rdmacc::Session;
using rdmacc::bridge::attached;
using rdmacc::bridge::no_throw;
using rdmacc::bridge::start;
using rdmacc::bridge::start_beside_load;
using rdmacc::bridge::view;

namespace {

// What a session's calls for many rows take.
struct Views {
  explicit Views(const BridgeRows& of) : keys(of.count), rows(of.count) {
    std::transform(of.keys, of.keys + of.count, keys.begin(), view);
    std::transform(of.rows, of.rows + of.count, rows.begin(), view);
  }
  std::vector<std::string_view> keys, rows;
};

void check(const BridgeRows* rows, const size_t* duplicate) {
  CHECK(rows != nullptr && rows->table != rdmacc::kNoTable && duplicate != nullptr);
  CHECK(rows->count == 0 || (rows->keys != nullptr && rows->rows != nullptr));
}

}  // namespace

void bridge_start_insert_many(const BridgeRows* rows, size_t* duplicate) {
  check(rows, duplicate);
  start([=](Session& session) {
    const Views views(*rows);
    return session.insert_many(rows->table, views.keys, views.rows, rows->check_absent, duplicate);
  });
}

void bridge_start_ask_for_load(uint32_t table, bool* possible) {
  CHECK(table != rdmacc::kNoTable && possible != nullptr);
  start([=](Session& session) {
    *possible = session.may_load() && !session.has_met(table);
    return rdmacc::Status();
  });
}

void bridge_start_expect_rows(uint32_t table, uint64_t rows) {
  CHECK(table != rdmacc::kNoTable);
  start([=](Session& session) { return session.expect_rows(table, rows); });
}

void bridge_start_post_load(const BridgeRows* rows, bool* in_place, size_t* duplicate) {
  check(rows, duplicate);
  CHECK(in_place != nullptr);
  start_beside_load([=](Session& session) {
    const Views views(*rows);
    *in_place = session.may_load() && !session.has_met(rows->table);
    if (!*in_place) {
      return session.insert_many(rows->table, views.keys, views.rows, rows->check_absent,
                                 duplicate);
    }
    return session.post_load(rows->table, views.keys, views.rows, rows->check_absent);
  });
}

void bridge_start_finish_load(size_t* duplicate) {
  CHECK(duplicate != nullptr);
  start_beside_load([=](Session& session) { return session.finish_load(duplicate); });
}

void bridge_give_up_load(void) {
  if (rdmacc::bridge::Attachment* at = attached()) at->session->give_up_load();
}

void bridge_go_on(void) {
  if (rdmacc::bridge::Attachment* at = attached()) no_throw([&] { at->pump->go_on(); });
}
