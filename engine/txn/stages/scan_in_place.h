#pragma once
#include "engine/txn/stages/look_in_place.h"
#include "engine/txn/stages/scan_work.h"

// The records of a scanned group where verbs are carried out in place, compiled for each rule that
// reads without locks, in its protocol's file.

namespace rdmacc {

// The records that a group's entries name. They are whole and accepted by the rule's first rounds
// nearly always; what is not is left to the driver, with the group.
class RowReads {
 public:
  // `rows` gets one for each entry; records come in `room`, of which each has `record_bytes`: of a
  // longer one, unless it overflows, no more than its beginning. None: headers alone are wanted.
  RowReads(NodeId node, TableId table, uint32_t record_bytes, std::span<const uint64_t> entries,
           std::byte* room, std::vector<ScannedRow>& rows)
      : node_(node),
        table_(table),
        record_bytes_(record_bytes),
        entries_(entries),
        room_(room),
        rows_(rows) {}

  // False: not all records were accepted at once, and none is to be used.
  bool all_read() const { return all_read_; }

  template <int kRounds, typename Port, typename RuleType>
  Status read(Port& port, StageContext& context, RuleType rule) {
    using End = InPlaceRounds::End;
    uint64_t observed = 0;
    std::byte* record = room_;
    all_read_ = true;
    rows_.reserve(entries_.size());
    for (const uint64_t entry : entries_) {
      Access access;
      access.header = GlobalAddress::make(node_, entry);
      access.table = table_;
      access.tag_only = true;
      const auto slot = port.find(access.header, kOffsetOfRecord + record_bytes_);
      if (port.lost(slot)) return DoorbellBatch::unreachable();
      InPlaceRounds rounds;
      const End end =
          run_rounds<kRounds>(port, rule, context, slot, access, record, record_bytes_, rounds);
      if (end == End::kLost) return DoorbellBatch::unreachable();
      all_read_ = end == End::kAccepted && !rounds.waiting;
      if (!all_read_) [[unlikely]]
        break;
      const RecordState::Accepted accepted = rounds.accepted(observed);
      if ((accepted.flags & kFlagLive) == 0) {
        all_read_ = false;
        break;
      }
      access.key_hash = accepted.key_hash;
      note_read(context, accepted, access);
      const bool overflows = (accepted.flags & kFlagOverflow) != 0;
      const size_t length = overflows && record_bytes_ != 0
                                ? accepted.length
                                : std::min(accepted.length, record_bytes_);
      const std::string_view bytes(reinterpret_cast<const char*>(record), length);
      rows_.push_back({.read = ScannedRead(access),
                       .incarnation = access.incarnation,
                       .flags = accepted.flags,
                       .record = bytes});
      record += record_bytes_;
    }
    context.engine.clock.observe(observed);
    port.end_round();
    return Status();
  }

 private:
  const NodeId node_;
  const TableId table_;
  const uint32_t record_bytes_;
  const std::span<const uint64_t> entries_;
  std::byte* const room_;
  std::vector<ScannedRow>& rows_;
  bool all_read_ = false;
};

template <Rule kRule, int kRounds>
[[gnu::flatten]] Status scan_in_place_fixed(StageContext& context, Rule, RowReads& reads) {
  const auto rule = [](const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
    return kRule(access, seen, txn);
  };
  return with_port_in_place(context,
                            [&](auto& port) { return reads.read<kRounds>(port, context, rule); });
}

// A rule that reads and locks nothing, with all that carries it out.
template <Rule kRule, int kRounds = 1>
constexpr StageRule scanned_by{kRule,
                               drive_fixed<kRule>,
                               look_in_place_fixed<kRule, kRounds>,
                               nullptr,
                               nullptr,
                               scan_in_place_fixed<kRule, kRounds>};

}  // namespace rdmacc
