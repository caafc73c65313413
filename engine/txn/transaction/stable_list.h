#pragma once
#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>

namespace rdmacc {

// Objects that stay where they are, in the order in which they came: a list of chunks, each larger
// than the one before. Nothing is taken out again; the memory is given back as a whole, by its
// owner, so that a list ends without a walk over its objects.
template <typename T>
class StableList {
  static_assert(std::is_trivially_destructible_v<T>);
  struct Chunk;

 public:
  explicit StableList(std::pmr::memory_resource* memory) : memory_(memory) {}
  StableList(const StableList&) = delete;
  StableList& operator=(const StableList&) = delete;

  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (last_ == nullptr || last_->used == last_->room) grow();
    return *new (&last_->objects()[last_->used++]) T(std::forward<Arguments>(arguments)...);
  }
  // One whose default is all zeros.
  T& emplace_zero() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (last_ == nullptr || last_->used == last_->room) grow();
    void* place = &last_->objects()[last_->used++];
    return *static_cast<T*>(std::memset(place, 0, sizeof(T)));
  }
  // So many of them, one behind the other. What is left of the last chunk is lost.
  T* emplace_zeros(size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (last_ == nullptr || last_->room - last_->used < count) grow(count);
    void* places = &last_->objects()[last_->used];
    last_->used += count;
    return static_cast<T*>(std::memset(places, 0, count * sizeof(T)));
  }
  void push_back(const T& object) { emplace_back(object); }
  bool empty() const { return first_ == nullptr; }
  T& back() { return last_->objects()[last_->used - 1]; }
  // Forgets the objects; their memory stays with its owner.
  void clear() { first_ = last_ = nullptr; }

  // Nothing is appended while one goes on: it knows the end of the chunk that it is in.
  template <typename Object, typename InChunk>
  class Iterator {
   public:
    explicit Iterator(InChunk* chunk, size_t at = 0) : chunk_(chunk) {
      if (chunk == nullptr) return;
      at_ = chunk->objects() + at;
      end_ = chunk->objects() + chunk->used;
    }
    Object& operator*() const { return *at_; }
    Iterator& operator++() {
      if (++at_ == end_) [[unlikely]]
        *this = Iterator(chunk_->next);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    InChunk* chunk_;
    Object* at_ = nullptr;
    Object* end_ = nullptr;  // of the chunk's objects
  };
  auto begin() { return Iterator<T, Chunk>(first_); }
  auto end() { return Iterator<T, Chunk>(nullptr); }
  auto begin() const { return Iterator<const T, const Chunk>(first_); }
  auto end() const { return Iterator<const T, const Chunk>(nullptr); }

  // Does `work` with each part of the list that lies in one piece, until it does not return true.
  template <typename Work>
  bool for_parts(const Work& work) const {
    for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
      if (!work(std::span<const T>(chunk->objects(), chunk->used))) return false;
    }
    return true;
  }

  // Where the list ends at the time: what comes later begins there.
  class Mark {
    friend class StableList;
    const Chunk* chunk = nullptr;
    size_t at = 0;
  };
  Mark mark() const {
    Mark mark;
    mark.chunk = last_;
    mark.at = last_ == nullptr ? 0 : last_->used;
    return mark;
  }
  auto begin_after(const Mark& mark) const {
    if (mark.chunk == nullptr) return begin();
    if (mark.at == mark.chunk->used) return Iterator<const T, const Chunk>(mark.chunk->next);
    return Iterator<const T, const Chunk>(mark.chunk, mark.at);
  }

 private:
  static constexpr size_t kRoomMin = 12, kRoomMax = 1024;

  struct Chunk {
    Chunk* next;
    size_t used, room;
    T* objects() { return reinterpret_cast<T*>(this + 1); }
    const T* objects() const { return reinterpret_cast<const T*>(this + 1); }
  };
  static_assert(alignof(T) <= alignof(Chunk));

  void grow(size_t count = 1) {
    const size_t larger = last_ == nullptr ? kRoomMin : std::min(2 * last_->room, kRoomMax);
    const size_t room = std::max(larger, count);
    void* memory = memory_->allocate(sizeof(Chunk) + room * sizeof(T), alignof(Chunk));
    Chunk* chunk = new (memory) Chunk{nullptr, 0, room};
    (last_ == nullptr ? first_ : last_->next) = chunk;
    last_ = chunk;
  }

  std::pmr::memory_resource* const memory_;
  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
};

}  // namespace rdmacc
