// A scan that a transaction shares with a guest, which looks up keys of its own besides.
#include "engine/txn/transaction/history.h"
#include "tests/sim/door/door_transaction.h"

namespace rdmacc {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

// It ends before its host does, whatever happens.
class Guest {
 public:
  explicit Guest(Session& host) : session(host.coordinator()) {}
  ~Guest() {
    cursor.reset();
    session.abort();
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  Session session;
  ScanHandle cursor;
};

}  // namespace

// The next rows of one of the two; `more`: there were some.
Status DoorTransaction::scan_part(Session& session, ScanCursor& cursor, TableId table,
                                  std::set<std::string>& seen, bool& more) {
  std::vector<RowView> batch;
  RDMACC_RETURN_IF_ERROR(session.scan_next(cursor, batch));
  for (const RowView& view : batch) {
    const Place place{table, std::string(view.key)};
    if (!seen.insert(place.second).second) {
      doubt_ = "a scan that is shared gave " + place.second + " twice";
    }
    RDMACC_RETURN_IF_ERROR(check_row(place, view));
  }
  more = !batch.empty();
  return Status();
}

// Of some transactions, mostly of those that only read.
Status DoorTransaction::begin_with_guest() {
  const uint32_t percent = inputs_.kind == Door::kReadOnly ? 20 : 5;
  if (!shared_.percent(percent) || !session_.may_host()) return Status();
  return scan_with_guest(around_.tables[shared_.below(around_.tables.size())]);
}

Status DoorTransaction::scan_with_guest(TableId table) {
  note(DoorOp::kScan, table);
  const Result<HostTicket> ticket = session_.host(table);
  if (!ticket.ok()) return ticket.status();
  Guest guest(session_);
  RDMACC_RETURN_IF_ERROR(guest.session.begin_as_guest(ticket.value()));
  uint64_t walk = 0;
  // By a number of its own, and so are other draws what they were.
  const bool decides = (ticket.value().ctts >> 16) % 4 != 0;
  if (decides) RDMACC_RETURN_IF_ERROR(session_.share_scan(table, &walk));
  const auto open = [&](Session& session) {
    return session.scan(table, kEveryCommand, ScanMode::kSerializable, {}, &walk);
  };
  Result<ScanHandle> here = open(session_);
  if (!here.ok()) return here.status();
  Result<ScanHandle> there = open(guest.session);
  if (!there.ok()) return there.status();
  guest.cursor = std::move(there.value());
  std::set<std::string> seen;
  bool here_more = true, there_more = true;
  while (here_more || there_more) {
    const bool by_guest = there_more && (!here_more || shared_.percent(50));
    if (by_guest && shared_.percent(20)) {
      const Place place = draw_place();
      RowView view;
      RDMACC_RETURN_IF_ERROR(guest.session.get(place.first, place.second, view));
      RDMACC_RETURN_IF_ERROR(check_row(place, view));
    }
    RDMACC_RETURN_IF_ERROR(by_guest
                               ? scan_part(guest.session, *guest.cursor, table, seen, there_more)
                               : scan_part(session_, **here, table, seen, here_more));
  }
  session_.borrow_history(guest.session.lend_history());
  if (guest.session.bytes_to_lend() == 0) return Status();
  const auto lent = std::make_shared<std::vector<Line>>(
      (guest.session.bytes_to_lend() + sizeof(Line) - 1) / sizeof(Line));
  guest.session.lend(lent->data()->bytes);
  return session_.borrow({lent->data()->bytes, lent->size() * sizeof(Line)}, lent);
}

}  // namespace rdmacc
