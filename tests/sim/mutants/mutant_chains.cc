// Drivers that post wrong chains, or believe what they should have looked at twice.

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "engine/log/log_entry.h"
#include "engine/storage/layout/tuple.h"
#include "tests/sim/mutants/mutants.h"

namespace rdmacc {
namespace {

constexpr uint64_t kLine = sizeof(Header);

bool of_word(const Verb& verb, Opcode opcode, uint64_t word) {
  return verb.opcode == opcode && verb.bytes == 8 && verb.remote_offset % kLine == word;
}
bool writes_word(const Verb& verb, uint64_t word) { return of_word(verb, Opcode::kWrite, word); }
// A whole line at least; under a lock the record comes with its header.
bool reads_from_line(const Verb& verb) {
  return verb.opcode == Opcode::kRead && verb.bytes >= kLine && verb.remote_offset % kLine == 0;
}
bool reads_header(const Verb& verb) { return reads_from_line(verb) && verb.bytes == kLine; }
bool may_be_of_row(const Header& header) {
  constexpr uint32_t kFlagsOfRows = kFlagLive | kFlagOverflow | kFlagDeleted;
  return header.table != kNoTable && (header.flags & ~kFlagsOfRows) == 0;
}
uint64_t first_word(const Verb& verb) {
  uint64_t value;
  std::memcpy(&value, verb.local, sizeof(value));
  return value;
}

// Buffers that outlive every chain of one run.
class Buffers {
 public:
  uint64_t* words(size_t count) {
    kept_.push_back(std::make_unique<uint64_t[]>(count));
    return kept_.back().get();
  }
  uint64_t* word(uint64_t value) {
    uint64_t* word = words(1);
    *word = value;
    return word;
  }

 private:
  std::vector<std::unique_ptr<uint64_t[]>> kept_;
};

using Verbs = std::vector<Verb>;

template <typename Rewrite>
void rewrite(SimFabric& fabric, Rewrite rewrite_chain) {
  auto buffers = std::make_shared<Buffers>();
  fabric.set_rewriter(
      [buffers, rewrite_chain](WorkerId, NodeId, Verbs& verbs) { rewrite_chain(*buffers, verbs); });
}

// ---- Orders

void header_words_in_the_wrong_order(SimFabric& fabric) {
  rewrite(fabric, [](Buffers&, Verbs& verbs) {
    for (Verb& verb : verbs) {
      if (!reads_header(verb)) continue;
      verb.order =
          verb.order == WordOrder::kAscending ? WordOrder::kDescending : WordOrder::kAscending;
    }
  });
}

// Header and record in one READ, whose lines come in any order, and the header again.
void one_read_for_header_and_record(SimFabric& fabric) {
  struct Both {
    void* header;
    void* record;
    uint32_t record_bytes;
  };
  auto under_way = std::make_shared<std::map<void*, Both>>();
  auto buffers = std::make_shared<Buffers>();
  fabric.set_rewriter([under_way, buffers](WorkerId, NodeId, Verbs& verbs) {
    for (size_t i = 1; i < verbs.size(); ++i) {
      Verb& header = verbs[i - 1];
      const Verb& record = verbs[i];
      if (!reads_header(header) || record.opcode != Opcode::kRead ||
          record.remote_offset != header.remote_offset + kOffsetOfRecord) {
        continue;
      }
      void* both = buffers->words((header.bytes + record.bytes) / 8);
      (*under_way)[both] = {header.local, record.local, record.bytes};
      header.bytes += record.bytes;
      header.local = both;
      verbs.erase(verbs.begin() + static_cast<ptrdiff_t>(i));
    }
  });
  fabric.set_delivery([under_way](WorkerId, NodeId, const Verb& verb) {
    const auto found = under_way->find(verb.local);
    if (found == under_way->end()) return;
    const auto* bytes = static_cast<const std::byte*>(verb.local);
    std::memcpy(found->second.header, bytes, sizeof(Header));
    std::memcpy(found->second.record, bytes + sizeof(Header), found->second.record_bytes);
    under_way->erase(found);
  });
}

// The lock word is looked at before it is taken.
void header_before_cas(SimFabric& fabric) {
  rewrite(fabric, [](Buffers&, Verbs& verbs) {
    for (size_t i = 0; i + 1 < verbs.size(); ++i) {
      if (of_word(verbs[i], Opcode::kCompareSwap, kOffsetOfLock) && reads_header(verbs[i + 1])) {
        std::swap(verbs[i], verbs[i + 1]);
        ++i;
      }
    }
  });
}

// ---- Locks

void shares_released_by_write(SimFabric& fabric) {
  rewrite(fabric, [](Buffers& buffers, Verbs& verbs) {
    for (Verb& verb : verbs) {
      if (!of_word(verb, Opcode::kFetchAdd, kOffsetOfLock)) continue;
      verb.opcode = Opcode::kWrite;
      verb.local = buffers.word(0);
    }
  });
}

// A release gives back the lock, too, that the latest CAS has not got.
void releases_what_it_does_not_hold(SimFabric& fabric) {
  auto lost = std::make_shared<std::map<std::pair<WorkerId, NodeId>, uint64_t>>();
  auto buffers = std::make_shared<Buffers>();
  fabric.set_delivery([lost](WorkerId worker, NodeId node, const Verb& verb) {
    if (!of_word(verb, Opcode::kCompareSwap, kOffsetOfLock)) return;
    if (first_word(verb) != verb.compare) (*lost)[{worker, node}] = verb.remote_offset;
  });
  fabric.set_rewriter([lost, buffers](WorkerId worker, NodeId node, Verbs& verbs) {
    for (const Verb& verb : verbs) {
      if (!writes_word(verb, kOffsetOfLock)) return;
    }
    const auto found = lost->find({worker, node});
    if (found == lost->end()) return;
    verbs.push_back({.opcode = Opcode::kWrite,
                     .bytes = 8,
                     .remote_offset = found->second,
                     .local = buffers->word(0)});
    lost->erase(found);
  });
}

// A transaction that has waited leaves its ctts behind: younger ones die of it for ever
// (docs/sequences.md §8.10).
void waiter_not_cleared(SimFabric& fabric) {
  rewrite(fabric, [](Buffers&, Verbs& verbs) {
    for (Verb& verb : verbs) {
      const bool clears = of_word(verb, Opcode::kCompareSwap, kOffsetOfWaiter) && verb.operand == 0;
      if (clears) verb.opcode = Opcode::kRead;
    }
  });
}

// A release that puts back an earlier lease than it found.
void release_forgets_the_lease(SimFabric& fabric) {
  rewrite(fabric, [](Buffers& buffers, Verbs& verbs) {
    for (Verb& verb : verbs) {
      if (!writes_word(verb, kOffsetOfSundial)) continue;
      constexpr uint64_t kDelta = 0xFFFF;
      verb.local = buffers.word(first_word(verb) & ~kDelta);
    }
  });
}

// ---- Versions

// The commit writes the whole header line, rts as the writer saw it.
void commit_writes_the_header_line(SimFabric& fabric) {
  using Place = std::pair<NodeId, uint64_t>;
  auto seen = std::make_shared<std::map<std::pair<WorkerId, Place>, Header>>();
  auto buffers = std::make_shared<Buffers>();
  fabric.set_delivery([seen](WorkerId worker, NodeId node, const Verb& verb) {
    if (!reads_header(verb)) return;
    Header header;
    std::memcpy(&header, verb.local, sizeof(header));
    (*seen)[{worker, {node, verb.remote_offset}}] = header;
  });
  fabric.set_rewriter([seen, buffers](WorkerId worker, NodeId node, Verbs& verbs) {
    for (Verb& verb : verbs) {
      if (!writes_word(verb, kOffsetOfWts)) continue;
      const uint64_t at = verb.remote_offset - kOffsetOfWts;
      const auto found = seen->find({worker, {node, at}});
      // The look of the commit itself, under the lock.
      if (found == seen->end() || found->second.lock != first_word(verb)) continue;
      Header header = found->second;
      header.wts = first_word(verb);
      uint64_t* line = buffers->words(sizeof(Header) / 8);
      std::memcpy(line, &header, sizeof(header));
      verb.remote_offset = at;
      verb.bytes = sizeof(Header);
      verb.local = line;
    }
  });
}

// ---- Identity and log

// A transaction that remembers where a row was takes what lives there now for it.
void incarnation_unchecked(SimFabric& fabric) {
  using Place = std::pair<NodeId, uint64_t>;
  auto known = std::make_shared<std::map<std::pair<WorkerId, Place>, Header>>();
  fabric.set_delivery([known](WorkerId worker, NodeId node, const Verb& verb) {
    if (!reads_from_line(verb)) return;
    Header header;
    std::memcpy(&header, verb.local, sizeof(header));
    if (!may_be_of_row(header)) return;
    const bool live = (header.flags & kFlagLive) != 0;
    const auto found = known->find({worker, {node, verb.remote_offset}});
    if (found == known->end()) {
      if (live) (*known)[{worker, {node, verb.remote_offset}}] = header;
      return;
    }
    if (header.incarnation == found->second.incarnation) return;
    header.incarnation = found->second.incarnation;
    header.key_hash = found->second.key_hash;
    if (!live) {
      header.flags = found->second.flags;
      header.length = found->second.length;
    }
    std::memcpy(verb.local, &header, sizeof(header));
  });
}

// The second half of a log entry leaves with the chain after it, when there is one.
void log_acknowledged_too_early(SimFabric& fabric) {
  auto rest = std::make_shared<std::map<std::pair<WorkerId, NodeId>, Verb>>();
  auto buffers = std::make_shared<Buffers>();
  fabric.set_rewriter([rest, buffers](WorkerId worker, NodeId node, Verbs& verbs) {
    if (const auto late = rest->find({worker, node}); late != rest->end()) {
      verbs.insert(verbs.begin(), late->second);
      rest->erase(late);
    }
    for (Verb& verb : verbs) {
      const bool entry = verb.opcode == Opcode::kWrite && verb.bytes >= 2 * kLine &&
                         first_word(verb) == kLogEntryMagic;
      if (!entry) continue;
      Verb second = verb;
      second.bytes = verb.bytes - static_cast<uint32_t>(kLine);
      second.remote_offset = verb.remote_offset + kLine;
      auto* copy = buffers->words(second.bytes / 8);
      std::memcpy(copy, static_cast<const std::byte*>(verb.local) + kLine, second.bytes);
      second.local = copy;
      verb.bytes = kLine;
      (*rest)[{worker, node}] = second;
    }
  });
}

// An entry that was never written.
void log_not_written(SimFabric& fabric) {
  rewrite(fabric, [](Buffers&, Verbs& verbs) {
    for (Verb& verb : verbs) {
      const bool entry = verb.opcode == Opcode::kWrite && verb.bytes >= kLine &&
                         first_word(verb) == kLogEntryMagic;
      if (entry) verb.bytes = 8;
    }
  });
}

std::vector<SimMutant> make_mutants() {
  std::vector<SimMutant> mutants;
  const auto add = [&mutants](const char* name, const char* breaks, const ProtocolRules& rules,
                              void (*prepare)(SimFabric&), uint32_t seeds_max) -> SimMutant& {
    SimScenario scenario = crowded(rules);
    scenario.prepare = prepare;
    mutants.push_back({name, breaks, rules, scenario, seeds_max});
    return mutants.back();
  };
  const auto add_rare = [&](const char* name, const char* breaks, const ProtocolRules& rules,
                            void (*prepare)(SimFabric&), uint32_t seeds_max) {
    SimMutant& rare = add(name, breaks, rules, prepare, seeds_max);
    rare.scenario = packed(rules);
    rare.scenario.prepare = prepare;
    rare.rare = true;
  };
  const ProtocolRules& nowait = right(Protocol::kNowait);
  const ProtocolRules& shared = right(Protocol::kNowait, LockMode::kShared);
  const ProtocolRules& waitdie = right(Protocol::kWaitdie);
  const ProtocolRules& woundwait = right(Protocol::kWoundwait);
  const ProtocolRules& occ = right(Protocol::kOcc);
  const ProtocolRules& mvcc = right(Protocol::kMvcc);
  const ProtocolRules& sundial = right(Protocol::kSundial);

  add_rare("MvccHeaderWordsInTheWrongOrder",
           "the post-read's rts after the lock (docs/sequences.md §8.5)", mvcc,
           header_words_in_the_wrong_order, 400);
  add_rare("SundialHeaderWordsInTheWrongOrder", "length after the stamp", sundial,
           header_words_in_the_wrong_order, 400);
  add("OccOneRead", "header and record in one READ (docs/sequences.md §8.1)", occ,
      one_read_for_header_and_record, 200);
  add("MvccOneRead", "header and record in one READ (docs/sequences.md §8.1)", mvcc,
      one_read_for_header_and_record, 200);
  add("SundialOneRead", "header and record in one READ (docs/sequences.md §8.1)", sundial,
      one_read_for_header_and_record, 200);
  add("OccLooksBeforeItsCas", "a blind write's stamp from before the lock", occ, header_before_cas,
      200);
  add("MvccLooksBeforeItsCas", "W1 before the CAS only", mvcc, header_before_cas, 200);
  add("NowaitSharesReleasedByWrite", "unlock of a share by WRITE 0", shared,
      shares_released_by_write, 100);
  add("NowaitReleasesWhatItDoesNotHold", "another's lock is gone", nowait,
      releases_what_it_does_not_hold, 100);
  add("WaitdieReleasesWhatItDoesNotHold", "another's lock is gone", waitdie,
      releases_what_it_does_not_hold, 100);
  add("WoundwaitReleasesWhatItDoesNotHold", "another's lock is gone", woundwait,
      releases_what_it_does_not_hold, 100);
  add("OccReleasesWhatItDoesNotHold", "another's lock is gone", occ, releases_what_it_does_not_hold,
      100);
  add("MvccReleasesWhatItDoesNotHold", "another's lock is gone", mvcc,
      releases_what_it_does_not_hold, 100);
  add("WaitdieWaiterNotCleared", "younger ones die for ever (docs/sequences.md §8.10)", waitdie,
      waiter_not_cleared, 40);
  add("SundialReleaseForgetsTheLease", "a reader's lease is lost (docs/sequences.md §8.6)", sundial,
      release_forgets_the_lease, 600);
  add("OccIncarnationUnchecked", "a location outlives its row", occ, incarnation_unchecked, 100);
  add("NowaitIncarnationUnchecked", "a location outlives its row", nowait, incarnation_unchecked,
      100);
  const auto add_log = [&](const char* name, const char* breaks, void (*prepare)(SimFabric&)) {
    SimMutant& log = add(name, breaks, nowait, prepare, 400);
    log.scenario.load = SimScenario::Load::kBank;
    log.scenario.code = static_cast<uint16_t>(Stage::kLock) | static_cast<uint16_t>(Stage::kLog);
    log.scenario.kills = 4;
  };
  add_log("NowaitLogAcknowledgedTooEarly", "the log is not complete at the commit point",
          log_acknowledged_too_early);
  add_log("NowaitLogNotWritten", "a committed transaction dies with its coordinator",
          log_not_written);
  add("MvccWritesTheHeaderLine", "the commit puts back an old rts", mvcc,
      commit_writes_the_header_line, 100)
      .harmless =
      "a reader's last header must itself show its rts, so a reader that has lost it "
      "raises it again";
  return mutants;
}

}  // namespace

std::span<const SimMutant> chain_mutants() {
  static const std::vector<SimMutant> mutants = make_mutants();
  return mutants;
}

}  // namespace rdmacc
