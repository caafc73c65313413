#include "rdma/shm/backing_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "rdma/base/check.h"

namespace rdmacc {

BackingThread::~BackingThread() {
  if (!thread_.joinable()) return;
  if (process_ != getpid()) {  // of the parent: there is no such thread here
    thread_.detach();
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BackingThread::ask(std::function<void()> request) {
  CHECK(request != nullptr);
  const std::lock_guard<std::mutex> lock(mutex_);
  next_ = std::move(request);
  if (thread_.joinable()) {
    changed_.notify_one();
    return;
  }
  // Signals are for the threads that were there before.
  sigset_t all, before;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
  process_ = getpid();
  thread_ = std::thread([this] { run(); });
  CHECK(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
}

void BackingThread::run() {
  CHECK(pthread_setname_np(pthread_self(), "rdmacc-backing") == 0);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || next_.has_value(); });
    if (ends_) return;
    const std::function<void()> request = std::move(*next_);
    next_.reset();
    lock.unlock();
    request();
    lock.lock();
  }
}

}  // namespace rdmacc
