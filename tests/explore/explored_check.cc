#include <cstring>

#include "engine/check/checker.h"
#include "engine/storage/layout/sundial_word.h"
#include "tests/explore/explored_world.h"

// Running the transactions, how they ended, and what must hold then.

namespace rdmacc {

namespace {
constexpr uint64_t kReadAllChoicesMax = 200'000;
}  // namespace

bool ExploredWorld::run(uint64_t choices_max) {
  const WorldMemory::Inside inside;
  for (const std::unique_ptr<Client>& client : clients_) client->go.finish_one();
  return fabric_->run_until(
      [this] {
        for (const std::unique_ptr<Client>& client : clients_) {
          if (!client->ended) return false;
        }
        return true;
      },
      choices_max);
}

std::string ExploredWorld::check(const std::vector<GlobalAddress>& headers) {
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (!clients_[i]->problem.empty()) {
      return "T" + std::to_string(i + 1) + ' ' + clients_[i]->problem;
    }
  }
  for (const GlobalAddress at : headers) {
    Header header;
    std::memcpy(&header, regions_[at.node()] + at.offset(), sizeof(header));
    if (header.lock != 0 || header.waiter != 0 || sundial_locked(header.sundial)) {
      return "a lock is left at " + name_of(at.node(), at.offset());
    }
  }
  bool ended = false;
  Status status;
  std::string problem;
  {
    const WorldMemory::Inside inside;
    CHECK(keeper_->coordinator->worker().scheduler().spawn([&] {
      Session session(*keeper_->coordinator);
      status = session.begin(txn_);
      RowView view;
      for (const std::string* key : {&x_, &y_, &z_}) {
        if (status.ok()) status = session.get(table_, *key, view);
      }
      if (status.ok()) status = read_all(session, problem);
      if (status.ok()) {
        status = session.commit();
      } else {
        session.abort();
      }
      ended = true;
    }));
    if (!fabric_->run_until([&] { return ended; }, kReadAllChoicesMax)) {
      return "reading everything at the end hangs";
    }
  }
  const std::string found = problem;  // with memory that lasts
  if (!status.ok()) return "reading everything at the end gives " + status.to_string();
  if (!found.empty()) return "at the end: " + found;
  const CheckReport report = check_serializable(history_->transactions(), {});
  return report.serializable ? "" : report.problem;
}

std::string ExploredWorld::outcomes() const {
  std::string letters;
  for (const std::unique_ptr<Client>& client : clients_) {
    letters += client->user_aborted ? 'u' : client->status.ok() ? 'c' : 'a';
  }
  return letters;
}

std::string ExploredWorld::describe_outcomes() const {
  std::string text;
  for (size_t i = 0; i < clients_.size(); ++i) {
    text += " T" + std::to_string(i + 1) + ": ";
    const Client& client = *clients_[i];
    if (!client.ended) {
      text += "not ended";
    } else if (client.user_aborted) {
      text += "aborted by its user";
    } else if (client.status.ok()) {
      text += "committed";
    } else {
      text += std::string("aborted, ") + abort_reason_name(reason_of(client.status));
    }
  }
  return text;
}

bool ExploredWorld::oldest_died() const {
  const Client& oldest = setup_.younger_first ? *clients_.back() : *clients_.front();
  const AbortReason reason = reason_of(oldest.status);
  return reason == AbortReason::kDied || reason == AbortReason::kWounded;
}

}  // namespace rdmacc
