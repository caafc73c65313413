#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace rdmacc {

// Memory for objects of one size that come and go all the time: that of those which have ended is
// kept, the latest on top, for those that begin. Its owner outlives them. One thread.
class ObjectMemory {
 public:
  ObjectMemory() = default;
  ~ObjectMemory() {
    for (void* block : free_) ::operator delete(block);
  }
  ObjectMemory(const ObjectMemory&) = delete;
  ObjectMemory& operator=(const ObjectMemory&) = delete;

  void* take(size_t bytes) {
    if (free_.empty()) return ::operator new(bytes);
    void* block = free_.back();
    free_.pop_back();
    return block;
  }
  void give_back(void* block) { free_.push_back(block); }

 private:
  std::vector<void*> free_;
};

}  // namespace rdmacc
