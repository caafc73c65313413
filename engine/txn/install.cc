#include "engine/txn/install.h"

#include "engine/storage/overflow.h"

namespace rdmacc {
namespace {

constexpr size_t kWritesPerRound = 256;

// The words that the effects of one write come from, in registered memory.
struct Words {
  uint64_t stamp;
  uint64_t length_flags;
  uint64_t identity;
  uint64_t zero;
};

class Installer {
 public:
  Installer(Worker& worker, const LogRecord& record, VerbCounters& counters)
      : worker_(worker),
        record_(record),
        arena_(worker.pool()),
        batch_(worker.scheduler(), counters) {}

  // Writes [begin, end) of the record, in one round.
  Status round(size_t begin, size_t end, bool guarded) {
    arena_.reset();
    std::vector<bool> ours(end - begin, true);
    if (guarded) RDMACC_RETURN_IF_ERROR(look(begin, end, ours));
    for (size_t i = begin; i < end; i++) {
      if (!ours[i - begin]) continue;
      const Write& write = record_.writes[i];
      const Status status = write.kind == WriteKind::kGap ? gap(write) : tuple(write);
      RDMACC_RETURN_IF_ERROR(status);
    }
    return batch_.execute();
  }

 private:
  static Status no_memory() { return Status(Code::kNoSpace, "registered memory is used up"); }

  Status look(size_t begin, size_t end, std::vector<bool>& ours) {
    auto* locks = arena_.allocate_array<uint64_t>(end - begin);
    if (locks == nullptr) return no_memory();
    for (size_t i = begin; i < end; i++) {
      batch_.read(record_.writes[i].header.plus(kOffsetOfLock), &locks[i - begin], 8);
    }
    RDMACC_RETURN_IF_ERROR(batch_.execute());
    for (size_t i = begin; i < end; i++) ours[i - begin] = locks[i - begin] == record_.lock_ctts;
    return Status();
  }

  Status tuple(const Write& write) {
    const GlobalAddress at = write.header;
    auto* words = arena_.allocate_array<Words>(1);
    if (words == nullptr) return no_memory();
    const bool unlink = write.kind == WriteKind::kUnlink;
    const uint32_t flags = unlink ? 0 : kFlagLive | (write.overflow.null() ? 0 : kFlagOverflow);
    words->stamp = record_.stamp;
    words->length_flags =
        pack_words(unlink ? 0 : static_cast<uint32_t>(write.record.size()), flags);
    words->identity = pack_words(write.table, write.incarnation + 1);
    words->zero = 0;
    if (!unlink && !write.overflow.null()) {
      RDMACC_RETURN_IF_ERROR(bytes(write.overflow.plus(sizeof(OverflowHeader)), write.record));
    }
    batch_.write(at.plus(kOffsetOfWts), &words->stamp, 8);
    batch_.write(at.plus(kOffsetOfLength), &words->length_flags, 8);
    if (unlink) {
      batch_.write(at.plus(kOffsetOfIdentity), &words->identity, 8);
    } else if (write.overflow.null()) {
      RDMACC_RETURN_IF_ERROR(bytes(at.plus(kOffsetOfRecord), write.record));
    } else {
      auto* reference = arena_.allocate_array<uint64_t>(1);
      if (reference == nullptr) return no_memory();
      *reference = write.overflow.offset();
      batch_.write(at.plus(kOffsetOfRecord), reference, 8);
    }
    batch_.write(at.plus(kOffsetOfLock), &words->zero, 8);
    return Status();
  }

  Status gap(const Write& write) {
    auto* words = arena_.allocate_array<Words>(1);
    auto* values = arena_.allocate_array<uint64_t>(write.entries.size() + 1);
    if (words == nullptr || values == nullptr) return no_memory();
    words->stamp = record_.stamp;
    words->zero = 0;
    batch_.write(write.header.plus(kOffsetOfWts), &words->stamp, 8);
    for (size_t i = 0; i < write.entries.size(); i++) {
      values[i] = write.entries[i].value;
      batch_.write(GlobalAddress::make(write.header.node(), write.entries[i].offset), &values[i],
                   8);
    }
    batch_.write(write.header.plus(kOffsetOfLock), &words->zero, 8);
    return Status();
  }

  Status bytes(GlobalAddress to, std::string_view from) {
    const uint64_t padded = round_up(from.size(), 8);
    std::byte* copy = arena_.allocate(padded);
    if (copy == nullptr) return no_memory();
    memset(copy + padded - 8, 0, 8);
    memcpy(copy, from.data(), from.size());
    batch_.write(to, copy, padded);
    return Status();
  }

  Worker& worker_;
  const LogRecord& record_;
  VerbArena arena_;
  DoorbellBatch batch_;
};

}  // namespace

Status install(Worker& worker, const LogRecord& record, bool guarded, VerbCounters& counters) {
  Installer installer(worker, record, counters);
  for (size_t begin = 0; begin < record.writes.size();) {
    // Gap headers follow all tuples, in rounds of their own: an entry is visible only when the
    // tuple behind it is whole, also on another node's view of a restarted install.
    size_t end = begin + 1;
    const bool gap = record.writes[begin].kind == WriteKind::kGap;
    while (end < record.writes.size() && end - begin < kWritesPerRound &&
           (record.writes[end].kind == WriteKind::kGap) == gap) {
      end++;
    }
    // One round for a small transaction: verbs of one node's chain keep their order, and a gap
    // header is on the node of its tuples.
    if (record.writes.size() <= kWritesPerRound) end = record.writes.size();
    RDMACC_RETURN_IF_ERROR(installer.round(begin, end, guarded));
    begin = end;
  }
  return Status();
}

InstallCommitted make_installer(Worker& worker) {
  return [&worker](const LogRecord& record, VerbCounters& counters) {
    return install(worker, record, /*guarded=*/true, counters);
  };
}

}  // namespace rdmacc
