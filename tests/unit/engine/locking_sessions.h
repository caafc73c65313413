#pragma once
#include <set>
#include <string>

#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {

// Protocols that lock nothing that is only read, with stages one-sided and by RPC: there row locks
// are early ones.
inline auto every_protocol_with_early_locks() {
  return testing::Combine(
      testing::Values(Protocol::kOcc, Protocol::kDrtm, Protocol::kMvcc, Protocol::kSundial,
                      Protocol::kTictoc, Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada),
      testing::Values(kOneSided, kRpc));
}

// What tests of row locks do with their sessions.
class LockingSessions : public TwoSessions {
 protected:
  static RowLock outcome(Result<RowLock> result) {
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    return result.ok() ? result.value() : RowLock::kAbsent;
  }
  void lock_and_write() {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      EXPECT_EQ(outcome(one_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
      ASSERT_TRUE(one_.put(table_, "b", "one").ok());
    });
  }
  // The keys of a scan; nothing when it fails.
  Status scan(Session& session, ScanMode mode, std::set<std::string>& keys) {
    auto cursor = session.scan(table_, kEveryCommand, mode);
    if (!cursor.ok()) return cursor.status();
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
      for (const RowView& row : batch) keys.insert(std::string(row.key));
    } while (!batch.empty());
    return Status();
  }
  std::set<std::string> skipping(Session& session) {
    std::set<std::string> keys;
    EXPECT_TRUE(scan(session, ScanMode::kSkipLocked, keys).ok());
    return keys;
  }
  std::set<std::string> keys_;  // that a scan has seen so far
};

}  // namespace rdmacc
