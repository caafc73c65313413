#pragma once
#include <deque>
#include <vector>

#include "engine/storage/layout/control_area.h"
#include "rdma/coroutine/scheduler.h"
#include "rdma/fabric/memory_region.h"

namespace rdmacc {

// Registered images of a worker's line and of what it read of the gate, one pair per chain in
// flight. An image is never rewritten before the chain that WRITEs it is done: the words of a
// line must arrive as they were put together (the last ctts before `inside` becomes 0).
//
// Chains to one node complete in the order of their numbers, so that one waited-for chain that
// is done tells the same of every unacknowledged one before it. The memory is not reused
// before the endpoint ends: the last leave() may still be on its way. One thread.
class LineImages {
 public:
  struct Image {
    WorkerLine line;
    GateLine gate;
  };

  explicit LineImages(RegisteredPool& pool) : pool_(pool) {}
  LineImages(const LineImages&) = delete;
  LineImages& operator=(const LineImages&) = delete;

  // The image of one chain. Where verbs are carried out in place nothing is in flight, and it is
  // its user's own.
  class OfChain {
   public:
    OfChain(LineImages& images, const Scheduler& scheduler)
        : images_(images), image_(scheduler.mapped() != nullptr ? &own_ : images.take()) {}
    bool none() const { return image_ == nullptr; }  // no registered memory left
    void borrow(Image& image) { image_ = &image; }
    Image* operator->() { return image_; }
    // Called right before the doorbell rings.
    void number() {
      if (image_ != &own_) chain_ = images_.number_chain();
    }
    // The chain was waited for, and its image was read; or it is not waited for.
    void completed() {
      if (image_ != &own_) images_.completed(image_, chain_);
    }
    void unacknowledged() {
      if (image_ != &own_) images_.unacknowledged(image_, chain_);
    }

   private:
    LineImages& images_;
    Image own_;
    Image* image_;
    uint64_t chain_ = 0;
  };

  // nullptr: no registered memory left.
  Image* take();
  // Called right before the doorbell rings: the chain's number.
  uint64_t number_chain() { return ++last_chain_; }
  // The waited-for chain `number` is done, and its image was read.
  void completed(Image* image, uint64_t number);
  // Chain `number` is not waited for.
  void unacknowledged(Image* image, uint64_t number) { pending_.push_back({image, number}); }

 private:
  struct Pending {
    Image* image;
    uint64_t chain;
  };

  RegisteredPool& pool_;
  std::vector<Image*> free_;
  std::deque<Pending> pending_;  // chain numbers rise
  uint64_t last_chain_ = 0;
  uint64_t last_completed_ = 0;
};
static_assert(sizeof(LineImages::Image) == 128);

}  // namespace rdmacc
