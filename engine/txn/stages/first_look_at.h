#pragma once
#include <array>
#include <boost/container/static_vector.hpp>

#include "engine/txn/driver/drive.h"
#include "engine/txn/rule/record_bytes.h"
#include "engine/txn/stages/first_look.h"

namespace rdmacc {

// How look_first() works: private to first_look.cc, which gathers verbs to rounds, and to
// look_in_place.h, which is compiled for a rule and carries them out key by key.
class FirstLook {
 public:
  template <typename T>
  using OfKeys = boost::container::static_vector<T, kKeysAtOnce>;

  FirstLook(StageContext& context, CachedTable& table, std::span<KeyState* const> keys,
            std::byte* room)
      : context_(context),
        table_(table),
        keys_(keys),
        room_(room),
        kept_by_caller_(room != nullptr) {
    CHECK(!keys.empty() && keys.size() <= kKeysAtOnce);
  }

  Status run();
  std::byte* room() const { return room_; }
  size_t plain() const { return plain_; }

  // ---- For look_in_place.h
  const CachedTable& table() const { return table_; }
  std::span<KeyState* const> keys() const { return keys_; }
  // Where the key is looked for next: its header or a bucket. Both null: it is left to the walk.
  struct Place {
    GlobalAddress header, bucket;
  };
  Place* places() { return places_.data(); }
  // The entry with the key's tag if the bucket has one, else the bucket that is chained to it, if
  // there is one. An entry of another key is for the walk to tell apart.
  void choose_entry(uint64_t hash, const Bucket& bucket, Place& place) const;
  static constexpr uint32_t kBucketsMax = 8;  // of a chain; a longer one is left to the walk

  // Is the accepted record the key's, whole in its slot? The usual case.
  static bool is_whole(const KeyState& key, const RecordState::Accepted& accepted,
                       const std::byte* record, uint32_t record_bytes) {
    return (accepted.flags & (kFlagLive | kFlagOverflow)) == kFlagLive &&
           accepted.length <= record_bytes &&
           is_record_of(key.key, {reinterpret_cast<const char*>(record), accepted.length});
  }
  void keep(KeyState& key, const RecordState::Accepted& accepted, Access& access) const;
  // Its record is at the room's beginning.
  void take_room(KeyState& key, uint32_t length) {
    const size_t before = kKeyLengthBytes + key.key.size();
    key.row = {reinterpret_cast<const char*>(room_) + before, length - before};
    room_ += round_up(length, 8);
    key.in_room = kept_by_caller_;
    plain_ += key.base == KeyState::Base::kExists && kept_by_caller_ ? 1 : 0;
  }
  // For a key whose record is not simply there: what the rounds came to is judged when all keys
  // have been read.
  RecordState& judge_later(KeyState& key, const RecordState& record) {
    judged_.push_back({&key, {}});
    return records_.emplace_back(record);
  }

 private:
  struct Judged {  // what a record is of
    KeyState* key;
    std::string_view record;  // where it is
  };

  Status load_roots();
  using Groups = std::array<const uint64_t*, kKeysAtOnce>;  // places in root arrays
  bool locate(bool in_place);
  bool find_groups(Groups& groups);
  Status read_buckets();
  Status read_records();
  Status settle();
  Status read_overflow_blocks();
  Status give_up(KeyState& key, const RecordState& record);
  bool wanted_by_other(const KeyState& self) const;

  StageContext& context_;
  CachedTable& table_;
  const std::span<KeyState* const> keys_;
  std::byte* room_;
  const bool kept_by_caller_;
  OfKeys<Place> places_;
  OfKeys<RecordState> records_;
  OfKeys<Judged> judged_;  // of each record
  size_t plain_ = 0;
};

inline void FirstLook::choose_entry(uint64_t hash, const Bucket& bucket, Place& place) const {
  const RegionLayout& layout = context_.engine.layout;
  const NodeId node = place.bucket.node();
  const uint16_t tag = tag_of(hash);
  for (const uint64_t entry : bucket.entries) {
    const uint64_t offset = entry_offset(entry);
    if (entry_tag(entry) != tag || entry == 0 || !layout.holds_header(offset)) continue;
    place = {GlobalAddress::make(node, offset), GlobalAddress{}};
    return;
  }
  // A recycled group's bytes may be anything.
  place.bucket =
      layout.holds_bucket(bucket.next) ? GlobalAddress::make(node, bucket.next) : GlobalAddress{};
}

// Notes which version was read.
inline void FirstLook::keep(KeyState& key, const RecordState::Accepted& accepted,
                            Access& access) const {
  const bool deleted = (accepted.flags & kFlagDeleted) != 0;
  key.base = deleted ? KeyState::Base::kAbsent : KeyState::Base::kExists;
  note_read(context_, accepted, access);
  key.version = access.read_wts;
}

}  // namespace rdmacc
