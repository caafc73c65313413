#pragma once
#include "engine/txn/stages/install.h"

// What becomes of the version that an install writes over, for a multi-version protocol: decided
// here from what was read of the row under its lock, and carried out by an install in rounds
// (installer.h) or in place (install_in_place.cc).

namespace rdmacc {

// A head and, behind it, the reference to an overflow block.
constexpr size_t kVersionBytes = sizeof(VersionHead) + 8;
// A new block's beginning: the slot that it belongs to, and the first version's head.
constexpr size_t kBeforeRecord = sizeof(uint64_t) + sizeof(VersionHead);
static_assert(kVersionsSlotPlace + sizeof(uint64_t) == version_place(0, 0));

// What a read before the writes tells of one header. `record` and `versions` are memory that may be
// written from.
struct VersionBefore {
  Header header;
  std::byte* record;    // the newest, of a slot whose version is to be kept, behind kBeforeRecord
  std::byte* versions;  // heads of the old ones and what follows: kVersionBytes each
  uint64_t block;       // where these are; 0: in none yet
  bool lost;            // there were others, which are gone
  GlobalAddress fresh;  // the block that the row gets
};

// The words that its effects come from, in memory that may be written from.
struct VersionWords {
  uint64_t stamp = 0;
  uint64_t reference = 0;
  uint64_t lost_stamp = kLostVersionStamp;
};

inline bool keeps_version(const Write& write) {
  return write.history > 0 &&
         (write.kind == WriteKind::kUpdate || write.kind == WriteKind::kTombstone);
}

// Where the row's old versions are, by the reference behind its record. A row that has no block for
// them yet gets one, for which it may have to wait.
void find_block(const Write& write, const InstallOptions& options, VersionBefore& before);

// Of one write.
class KeptVersion {
 public:
  // Nothing is kept.
  KeptVersion() = default;
  // The newest record becomes an old version, or it is lost: then its overflow block has no use.
  KeptVersion(const Write& write, const VersionBefore& before, const InstallOptions& options,
              VersionWords& words);

  // One of the effects on versions. `out` has write_at(address, from, bytes).
  template <typename Out>
  [[gnu::always_inline]] void carry_out(Effect effect, const Write& write,
                                        const VersionWords& words, Out& out) const {
    const bool replaces = bytes_ != nullptr && fresh_.null();
    if (effect == Effect::kVersionStamp) {
      if (replaces) out.write_at(at_, &words.stamp, 8);
      return;
    }
    if (replaces) {
      out.write_at(at_.plus(8), bytes_ + 8, sizeof(VersionHead) - 8 + write.record_size);
    }
    const GlobalAddress reference = write.header.plus(versions_reference_place(write.record_size));
    if (tells_loss_) out.write_at(reference, &words.reference, 8);
    if (fresh_.null()) return;
    // A row's first block is whole before the row names it, and says whose it is: the owner looks
    // there.
    out.write_at(fresh_.plus(kVersionsSlotPlace), bytes_ - sizeof(uint64_t),
                 kBeforeRecord + write.record_size);
    for (uint32_t v = 1; lost_ && v < write.history; v++) {
      out.write_at(fresh_.plus(version_place(write.record_size, v)), &words.lost_stamp, 8);
    }
    out.write_at(reference, &words.reference, 8);
  }

 private:
  void make_room(const Write& write, const VersionBefore& before, const InstallOptions& options);

  GlobalAddress at_;            // the old version that makes room
  std::byte* bytes_ = nullptr;  // that it will have; nullptr: none is kept
  GlobalAddress fresh_;         // the block that becomes the row's
  bool lost_ = false;           // the row has lost versions
  bool tells_loss_ = false;     // and is told so
};

}  // namespace rdmacc
