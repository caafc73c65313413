#include "engine/bench/machine_limits.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "rdma/base/random.h"

namespace rdmacc {
namespace {

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kWantedBytes = 1ull << 30;
constexpr uint64_t kLeastBytes = 64ull << 20;
constexpr uint64_t kClearedAtOnce = 16ull << 20;
constexpr uint64_t kReads = 400'000;  // of one measurement
constexpr uint64_t kSwaps = 200'000;
constexpr uint64_t kRoundTrips = 20'000;
constexpr uint64_t kSwitches = 200'000;
constexpr uint32_t kSpinsBeforeYield = 10'000;
constexpr int kPrefetchAhead = 8;

// Shared memory, as a node's region is, so that pages are of the same kind.
class SharedMapping {
 public:
  explicit SharedMapping(uint64_t bytes)
      : bytes_(bytes),
        start_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedMapping() {
    if (ok()) munmap(start_, bytes_);
  }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  bool ok() const { return start_ != MAP_FAILED; }
  std::byte* start() const { return static_cast<std::byte*>(start_); }

 private:
  const uint64_t bytes_;
  void* const start_;
};

uint64_t sum_of_line(const std::byte* line) {
  uint64_t words[kLineBytes / 8];
  std::memcpy(words, line, sizeof(words));
  uint64_t sum = 0;
  for (const uint64_t word : words) sum += word;
  return sum;
}

// Keeps a result alive without a store that costs something.
void keep(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

double per_operation(uint64_t start_ns, uint64_t count) {
  return static_cast<double>(monotonic_ns() - start_ns) / static_cast<double>(count);
}

double dependent_reads(const std::byte* memory, uint64_t lines) {
  Random random(1);
  uint64_t seen = 0;
  const uint64_t start = monotonic_ns();
  for (uint64_t i = 0; i < kReads; ++i) {
    // The memory holds zeros, which only the processor does not know: the place waits for `seen`.
    seen = sum_of_line(memory + random.below(lines) * kLineBytes + seen * kLineBytes);
  }
  const double ns = per_operation(start, kReads);
  keep(seen);
  return ns;
}

double independent_reads(const std::byte* memory, uint64_t lines) {
  Random random(2), ahead(2);
  for (int i = 0; i < kPrefetchAhead; ++i) ahead.next();
  uint64_t sum = 0;
  const uint64_t start = monotonic_ns();
  for (uint64_t i = 0; i < kReads; ++i) {
    __builtin_prefetch(memory + ahead.below(lines) * kLineBytes);
    sum += sum_of_line(memory + random.below(lines) * kLineBytes);
  }
  const double ns = per_operation(start, kReads);
  keep(sum);
  return ns;
}

double compare_swaps(std::byte* memory, uint64_t lines) {
  Random random(3);
  uint64_t seen = 0;
  const uint64_t start = monotonic_ns();
  for (uint64_t i = 0; i < kSwaps; ++i) {
    std::byte* line = memory + random.below(lines) * kLineBytes + seen * kLineBytes;
    uint64_t expected = 0;
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(line))
        .compare_exchange_strong(expected, 0);
    seen = expected;  // zero, but the next place waits for it
  }
  return per_operation(start, kSwaps);
}

// One direction of the ring: a message of a line, numbered.
struct alignas(kLineBytes) RingSlot {
  std::atomic<uint64_t> number;
  uint64_t payload[kLineBytes / 8 - 1];
};

void await_number(const RingSlot& slot, uint64_t number) {
  for (uint32_t spins = 0; slot.number.load(std::memory_order_acquire) != number; ++spins) {
    if (spins % kSpinsBeforeYield == kSpinsBeforeYield - 1) {
      sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }
}

void pass_on(const RingSlot& from, RingSlot& to, uint64_t number) {
  std::memcpy(to.payload, from.payload, sizeof(to.payload));
  to.number.store(number, std::memory_order_release);
}

// Once `interrupted` is set it is no measurement.
double best_of(const std::function<double()>& measure, const std::atomic<bool>& interrupted) {
  double best = measure();
  for (uint32_t i = 1; i < kMeasurements && !interrupted.load(); ++i) {
    best = std::min(best, measure());
  }
  return best;
}

Result<double> ring_round_trips(const std::atomic<bool>& interrupted) {
  const SharedMapping shared(2 * sizeof(RingSlot));
  if (!shared.ok()) return Status::from_errno("mmap");
  auto* slots = reinterpret_cast<RingSlot*>(shared.start());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Status::from_errno("fork");
  if (child == 0) {
    for (uint64_t i = 1; i <= kRoundTrips * kMeasurements && getppid() == parent; ++i) {
      await_number(slots[0], i);
      pass_on(slots[0], slots[1], i);
    }
    _exit(0);
  }
  uint64_t number = 0;
  // Where others use the processors each may take a time slice.
  const auto measure = [&] {
    const uint64_t start = monotonic_ns();
    for (uint64_t i = 0; i < kRoundTrips && !interrupted.load(); ++i) {
      pass_on(slots[1], slots[0], ++number);
      await_number(slots[1], number);
    }
    return per_operation(start, kRoundTrips);
  };
  const double ns = best_of(measure, interrupted);
  if (interrupted.load()) kill(child, SIGKILL);  // it waits for the next message
  waitpid(child, nullptr, 0);
  return ns;
}

// Boost's contexts as its coroutines use them, without the coroutines' own bookkeeping.
double coroutine_switches() {
  namespace context = boost::context;
  bool end = false;
  context::fiber other([&end](context::fiber&& back) {
    while (!end) back = std::move(back).resume();
    return std::move(back);
  });
  const uint64_t start = monotonic_ns();
  for (uint64_t i = 0; i < kSwitches; ++i) other = std::move(other).resume();
  const double ns = per_operation(start, kSwitches) / 2;
  end = true;
  other = std::move(other).resume();
  return ns;
}

}  // namespace

void clear_memory(std::byte* start, uint64_t bytes, const std::atomic<bool>& interrupted) {
  for (uint64_t done = 0; done < bytes && !interrupted.load(); done += kClearedAtOnce) {
    std::memset(start + done, 0, std::min(kClearedAtOnce, bytes - done));
  }
}

uint64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t measured_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  uint64_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    std::getline(file, unit);
    if (name != "MemAvailable:") continue;
    const uint64_t half = kilobytes * 1024 / 2;
    return std::clamp(half / kLeastBytes * kLeastBytes, kLeastBytes, kWantedBytes);
  }
  return kWantedBytes;
}

Result<MachineLimits> measure_machine(uint64_t memory_bytes, const std::atomic<bool>& interrupted) {
  const Status ended(Code::kCancelled, "interrupted");
  MachineLimits limits;
  limits.memory_bytes = memory_bytes;
  const Result<double> ring = ring_round_trips(interrupted);
  if (!ring.ok()) return ring.status();
  limits.ring_round_trip_ns = ring.value();
  limits.coroutine_switch_ns = best_of(coroutine_switches, interrupted);
  if (interrupted.load()) return ended;

  const SharedMapping memory(memory_bytes);
  if (!memory.ok()) return Status::from_errno("mmap");
  madvise(memory.start(), memory_bytes, MADV_HUGEPAGE);  // as the shm fabric asks
  clear_memory(memory.start(), memory_bytes, interrupted);
  if (interrupted.load()) return ended;
  const uint64_t lines = memory_bytes / kLineBytes;
  std::byte* start = memory.start();
  limits.dependent_read_ns = best_of([&] { return dependent_reads(start, lines); }, interrupted);
  limits.independent_read_ns =
      best_of([&] { return independent_reads(start, lines); }, interrupted);
  limits.compare_swap_ns = best_of([&] { return compare_swaps(start, lines); }, interrupted);
  if (interrupted.load()) return ended;
  return limits;
}

}  // namespace rdmacc
