#pragma once
#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace rdmacc {

// Does one thing after the other beside the thread that asks for it: memory is made ready before it
// is needed. To make a huge page the kernel waits for every processor, for milliseconds where they
// are busy. The thread begins with the first request, and ends with this.
class BackingThread {
 public:
  BackingThread() = default;
  ~BackingThread();
  BackingThread(const BackingThread&) = delete;
  BackingThread& operator=(const BackingThread&) = delete;

  // A request that has not begun yet is replaced: it was a hint, and what is needed is newer.
  void ask(std::function<void()> request);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::function<void()>> next_;
  bool ends_ = false;
  pid_t process_ = 0;  // that has the thread
  std::thread thread_;
};

}  // namespace rdmacc
