#include "engine/coordinator_impl.h"
#include "engine/session.h"
#include "engine/txn/transaction/transaction.h"

// Rows that a transaction puts into a table of its own before it commits.

namespace rdmacc {

bool Session::may_load() const { return txn_ != nullptr && txn_->rules().may_load_beforehand(); }
bool Session::has_met(TableId table) { return txn_ != nullptr && txn_->has_met(table); }

Status Session::load_rows(TableId table, std::span<const std::string_view> keys,
                          std::span<const std::string_view> rows, bool check_absent,
                          size_t* duplicate) {
  RDMACC_RETURN_IF_ERROR(post_load(table, keys, rows, check_absent));
  return finish_load(duplicate);
}

Status Session::post_load(TableId table, std::span<const std::string_view> keys,
                          std::span<const std::string_view> rows, bool check_absent) {
  CHECK(keys.size() == rows.size());
  if (!may_load()) {
    return Status(Code::kInvalidArgument, "the protocol loads no rows before the commit");
  }
  if (load_posted()) return Status(Code::kInvalidArgument, "another load has not ended well yet");
  if (keys.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(enter(name_of_access(table, keys[0])));
  std::vector<RowToLoad> all;
  for (size_t i = 0; i < keys.size(); i++) {
    RDMACC_RETURN_IF_ERROR(check_sizes(keys[i], rows[i]));
    all.push_back({keys[i], rows[i], 0});
  }
  posted_load_ = txn_->post_load(all, table, check_absent);
  return Status();
}

void Session::await_posted() { posted_load_->await(); }

Status Session::finish_load(size_t* duplicate) {
  CHECK(duplicate != nullptr);
  if (!load_posted()) return Status();
  const Status status = txn().end_load(*posted_load_, duplicate);
  if (status.ok()) posted_load_.reset();
  return status;
}

void Session::give_up_load() {
  if (load_posted()) given_up_loads_.push_back(std::move(posted_load_));
}

Status Session::end_posted_loads() {
  size_t duplicate = 0;
  const Status status = finish_load(&duplicate);
  for (const std::unique_ptr<PostedLoad>& load : given_up_loads_) load->await();
  given_up_loads_.clear();
  posted_load_.reset();
  return status;
}

}  // namespace rdmacc
