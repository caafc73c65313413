#pragma once
#include "engine/log/log_record.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/rule/rule.h"

namespace rdmacc {

// The words that the effects of one write come from.
struct EffectWords {
  uint64_t stamp;
  uint64_t length_flags;
  uint64_t identity;
  uint64_t key_hash;
  uint64_t lease;
  uint64_t zero;
};

inline EffectWords effect_words(const LogRecord& record, const Write& write) {
  const bool gone = write.kind == WriteKind::kUnlink;
  const uint32_t flags = (gone ? 0 : kFlagLive) | (write.overflow.null() ? 0 : kFlagOverflow) |
                         (write.kind == WriteKind::kTombstone ? kFlagDeleted : 0);
  return {record.stamp,
          pack_words(gone ? 0 : static_cast<uint32_t>(write.record.size()), flags),
          pack_words(write.table, write.incarnation + 1),
          write.key_hash,
          sundial_unlocked_word(record.lease, 0),
          0};
}

// Those on old versions (kept_version.h).
constexpr bool is_of_version(Effect effect) {
  return effect == Effect::kVersionStamp || effect == Effect::kVersionRecord;
}

// Carries out one of the others. `out` has
//   word(distance, word)   writes a word of the header
//   record(write)          the new bytes
//   entries(write)         of a gap header's group
template <typename Out>
[[gnu::always_inline]] inline Status carry_out(Effect effect, const Write& write,
                                               const EffectWords& words, Out& out) {
  switch (effect) {
    case Effect::kVersionStamp:
    case Effect::kVersionRecord:
      break;
    case Effect::kStamp:
      out.word(kOffsetOfWts, words.stamp);
      break;
    case Effect::kLength:
      if (write.kind != WriteKind::kGap) out.word(kOffsetOfLength, words.length_flags);
      break;
    case Effect::kIdentity:
      if (write.kind == WriteKind::kUnlink) {
        out.word(kOffsetOfIdentity, words.identity);
      } else if (write.kind == WriteKind::kInsert) {
        out.word(0, words.key_hash);  // a slot that was reserved knows its table alone
      }
      break;
    case Effect::kRecord:
      if (write.kind == WriteKind::kUnlink) return Status();  // its key is for logs
      return write.record.empty() ? Status() : out.record(write);
    case Effect::kEntries:
      return write.entries.empty() ? Status() : out.entries(write);
    case Effect::kLease:
      out.word(kOffsetOfSundial, words.lease);
      break;
    case Effect::kUnlock:
      out.word(kOffsetOfLock, words.zero);
      break;
  }
  return Status();
}

}  // namespace rdmacc
