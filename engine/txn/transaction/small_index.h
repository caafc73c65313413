#pragma once
#include <array>
#include <memory_resource>

#include "rdma/base/base.h"

namespace rdmacc {

// Finds objects by a 64-bit number: open addressing with linear probing, at most half full. The
// first places lie in the index itself, the others come from `memory` and stay there until it is
// given back as a whole. Nothing is taken out again, and an object is never nullptr.
template <typename T>
class SmallIndex {
 public:
  explicit SmallIndex(std::pmr::memory_resource* memory) : memory_(memory) {}
  SmallIndex(const SmallIndex&) = delete;
  SmallIndex& operator=(const SmallIndex&) = delete;

  // nullptr when there is none.
  T* find(uint64_t number) const { return places_[slot_of(number)].object; }
  [[gnu::always_inline]] void prefetch(uint64_t number) const {
    __builtin_prefetch(&places_[first_slot_of(number)]);
  }
  // The number's place. That of a new number holds nullptr, which its caller replaces at once.
  T*& at(uint64_t number) {
    Place* place = &places_[slot_of(number)];
    if (place->object == nullptr) {
      if (++used_ * 2 > mask_) place = grow(number);
      place->number = number;
    }
    return place->object;
  }

 private:
  struct Place {
    uint64_t number = 0;
    T* object = nullptr;
  };
  static constexpr size_t kFirstPlaces = 32;

  // Neighbouring numbers and those that differ in their high bits alone part here.
  size_t first_slot_of(uint64_t number) const {
    return static_cast<size_t>((number ^ number >> 32) * 0x9E3779B97F4A7C15ull >> 32) & mask_;
  }
  // Where the number is, or where it would be.
  size_t slot_of(uint64_t number) const {
    size_t at = first_slot_of(number);
    while (places_[at].object != nullptr && places_[at].number != number) at = (at + 1) & mask_;
    return at;
  }
  Place* grow(uint64_t number) {
    const Place* old = places_;
    const size_t count = mask_ + 1;
    places_ = static_cast<Place*>(memory_->allocate(2 * count * sizeof(Place), alignof(Place)));
    mask_ = 2 * count - 1;
    for (size_t i = 0; i < 2 * count; i++) new (&places_[i]) Place();
    for (size_t i = 0; i < count; i++) {
      if (old[i].object != nullptr) places_[slot_of(old[i].number)] = old[i];
    }
    return &places_[slot_of(number)];
  }

  std::pmr::memory_resource* const memory_;
  std::array<Place, kFirstPlaces> first_{};
  Place* places_ = first_.data();
  size_t mask_ = kFirstPlaces - 1;
  size_t used_ = 0;
};

}  // namespace rdmacc
