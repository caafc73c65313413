#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/explore/explored_world.h"
#include "tests/explore/shared_words.h"

namespace rdmacc {

struct ExploreLimits {
  uint64_t states_max = 1'000'000;
  bool reduce = true;  // false: every event is a choice, to check what the reductions leave out
};

struct ExploreReport {
  std::string problem;  // empty: none was found
  std::string trace;    // the failing order of events in words
  std::string choices;  // and as what EXPLORE_CHOICES takes
  bool exhausted = false;
  uint64_t states = 0, executions = 0, depth_max = 0, pieces = 0, ends = 0, restarts = 0;
  uint64_t shared_words = 0;
  uint64_t pages = 0;                        // of memory that any execution has changed
  std::map<std::string, uint64_t> outcomes;  // "ca": how many different ends
  // Outcomes and what verbs have left in the tables, hashed.
  std::set<uint64_t> results;

  std::string summary() const;
};

// Tries every order of the events of one program, depth first. An execution cannot be cloned, so
// each begins at the snapshot, follows the choices of the present path and goes on from there.
//
//  - An event that touches only words that no two workers contend for (one of them writing)
//    commutes with all that others ever do, so it is carried out at once. Which words are
//    contended for is learnt: when an execution shows a new one the search starts again.
//  - Of two events that commute, one order is enough: sleep sets, kept with the visited states
//    (Godefroid, "Partial-Order Methods", 1996, §5).
//  - A state is the region's words and, for each worker, a hash of everything it has observed;
//    a worker's code is a function of that. Verbs under way are part of it by what they have read.
//  - A pause ends once another worker has changed a contended word since the look before it, or
//    when nothing else can happen.
class Explorer : public SimChooser {
 public:
  Explorer(const ExploreProgram& program, const ExploreSetup& setup,
           const ExploreMutation& mutation = {});

  ExploreReport explore(const ExploreLimits& limits);
  // One execution along choices as a report gave them; its trace and problem.
  ExploreReport replay(const std::string& choices);

  size_t choose(std::span<const SimChoice> possible) override;
  void piece_done(const SimChoice& piece, std::span<const uint64_t> before,
                  std::span<const uint64_t> after) override;
  void datagram_arrives(const SimChoice& datagram, std::span<const std::byte> bytes) override;
  void stepped(WorkerId worker, uint32_t chains) override;

 private:
  enum class Mode : uint8_t {
    kSerial,   // one transaction after the other
    kExplore,  // as the path says, then on
    kReplay,   // along given choices
    kFree,     // whatever comes first: for the transaction that checks
  };
  struct Frame {
    std::vector<SimChoice> options;
    size_t at = 0;
    std::vector<SimChoice> sleep;
  };
  struct Fingerprint {  // of what one worker has observed from one source
    uint64_t hash = 0;
    uint64_t verbs = 0;  // complete
    bool in_chain = false;
    uint64_t stores_at_look = 0;  // others', when the latest chain began
  };

  void begin_execution(Mode mode);
  bool run_execution();
  bool backtrack();
  std::string judge(bool ended);
  void run_serially();
  void explore_all(const ExploreLimits& limits);
  void note_end();
  void fail(const std::string& problem);

  size_t choose_serial(std::span<const SimChoice> possible) const;
  size_t choose_next(std::span<const SimChoice> possible);
  size_t note_choice(std::span<const SimChoice> possible, size_t chosen);
  bool may_end_pause(const SimChoice& timer) const;
  bool waits_for_clock(const SimChoice& choice) const;
  bool pauses(const SimChoice& timer) const;
  std::vector<SimChoice> enabled(std::span<const SimChoice> possible) const;
  bool exclusive(const SimChoice& choice) const;
  bool independent(const SimChoice& a, const SimChoice& b) const;
  std::vector<SimChoice> still_asleep(const std::vector<SimChoice>& sleep,
                                      const SimChoice& happens) const;
  bool push_frame(std::vector<SimChoice> options);
  uint64_t state_hash() const;
  void rehash_regions();
  Fingerprint& fingerprint_of(const SimChoice& choice);
  uint64_t others_stores(WorkerId worker) const;
  size_t sources() const { return world_.topology().nodes + world_.topology().workers_max; }
  size_t source_of(const SimChoice& choice) const;
  size_t node_source_of(const SimChoice& choice) const;
  void note_timer(const SimChoice& timer);
  std::string describe(const SimChoice& choice) const;
  void trace_values(std::span<const uint64_t> before, std::span<const uint64_t> after);

  const ExploreProgram program_;
  const ExploreSetup setup_;
  const bool owner_touches_;
  ExploredWorld world_;
  SharedWords words_;
  ExploreReport report_;

  // Of the search.
  std::unordered_map<uint64_t, std::vector<uint64_t>> visited_;  // sleep set by state
  std::unordered_map<uint64_t, bool> ends_;
  std::vector<Frame> path_;

  // Of the execution under way.
  Mode mode_ = Mode::kSerial;
  bool reduce_ = true;
  bool reversed_ = false;  // kSerial: the last transaction first
  size_t depth_ = 0;
  bool cut_ = false;  // what follows is known
  bool stuck_ = false;
  std::vector<SimChoice> sleep_;
  std::vector<Fingerprint> observed_;  // [worker][source]
  // Of each node: the source on whose behalf it posted each of its chains, how many chains are
  // complete, and what its latest step was for.
  struct NodeWork {
    std::vector<size_t> source_of_chain;
    size_t complete = 0;
    size_t now_for = 0;
  };
  std::vector<NodeWork> node_work_;
  std::vector<uint64_t> stores_by_;  // changes of contended words, by worker
  uint64_t stores_ = 0;
  uint64_t memory_hash_ = 0;
  uint64_t tables_hash_ = 0;
  std::vector<uint32_t> taken_;  // index of every choice made
  std::vector<uint32_t> to_take_;
  bool tracing_ = false;
  std::string trace_;
  std::vector<GlobalAddress> headers_;  // that were ever locked
};

}  // namespace rdmacc
