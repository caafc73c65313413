#include <algorithm>

#include "tests/explore/explorer.h"

// Which of the possible events happens next, and which orders of them need not be tried.

namespace rdmacc {
namespace {

constexpr uint64_t kPauseUsMax = 1'000;  // a longer timer is a time-out, which never comes
constexpr uint64_t kClockUsMin = 100;    // as long a one waits for the clock, not for a look

uint64_t id_of(const SimChoice& choice) {
  return (static_cast<uint64_t>(choice.kind) << 56) | (static_cast<uint64_t>(choice.worker) << 40) |
         (static_cast<uint64_t>(choice.peer) << 24) | choice.part;
}

bool contains(const std::vector<SimChoice>& choices, const SimChoice& wanted) {
  return std::any_of(choices.begin(), choices.end(),
                     [&](const SimChoice& choice) { return id_of(choice) == id_of(wanted); });
}

bool overlap(const SimChoice& a, const SimChoice& b) {
  return a.peer == b.peer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

size_t Explorer::choose(std::span<const SimChoice> possible) {
  const WorldMemory::Outside outside;
  switch (mode_) {
    case Mode::kSerial:
      return note_choice(possible, choose_serial(possible));
    case Mode::kExplore:
      return note_choice(possible, choose_next(possible));
    case Mode::kReplay:
      if (taken_.size() == to_take_.size() || to_take_[taken_.size()] >= possible.size()) {
        stuck_ = true;
        return kStop;
      }
      return note_choice(possible, to_take_[taken_.size()]);
    case Mode::kFree:
      break;
  }
  const auto first = std::find_if(possible.begin(), possible.end(), [&](const SimChoice& choice) {
    return choice.kind != SimChoice::Kind::kTimer || pauses(choice);
  });
  return first == possible.end() ? kStop : static_cast<size_t>(first - possible.begin());
}

size_t Explorer::note_choice(std::span<const SimChoice> possible, size_t chosen) {
  if (chosen == kStop) return kStop;
  if (possible[chosen].kind == SimChoice::Kind::kTimer) note_timer(possible[chosen]);
  taken_.push_back(static_cast<uint32_t>(chosen));
  if (tracing_) trace_ += "  " + describe(possible[chosen]) + '\n';
  return chosen;
}

// Everything of one transaction before anything of the next, its requests included.
size_t Explorer::choose_serial(std::span<const SimChoice> possible) const {
  const auto rank = [this](const SimChoice& choice) {
    if (choice.kind == SimChoice::Kind::kTimer && !pauses(choice)) return UINT32_MAX;
    const WorkerId client =
        choice.kind == SimChoice::Kind::kDatagram && world_.is_node(choice.worker) ? choice.peer
                                                                                   : choice.worker;
    if (world_.is_node(client)) return choice.kind == SimChoice::Kind::kTimer ? 1u : 0u;
    const uint32_t order = reversed_ ? 1000u - client : client;
    return 2 + 2 * order + (choice.kind == SimChoice::Kind::kTimer ? 1 : 0);
  };
  size_t best = 0;
  for (size_t i = 1; i < possible.size(); ++i) {
    if (rank(possible[i]) < rank(possible[best])) best = i;
  }
  return rank(possible[best]) == UINT32_MAX ? kStop : best;
}

bool Explorer::pauses(const SimChoice& timer) const {
  return timer.deadline_us <= world_.clock_us(timer.worker) + kPauseUsMax;
}

// What another worker knows of the time changes with it, too (SimCluster::clock_bounds_of).
bool Explorer::waits_for_clock(const SimChoice& choice) const {
  return choice.kind == SimChoice::Kind::kTimer && pauses(choice) &&
         choice.deadline_us >= world_.clock_us(choice.worker) + kClockUsMin;
}

// Looking again is worth it once another worker has changed something since the look before. A
// node's requests count as other workers to one another.
uint64_t Explorer::others_stores(WorkerId worker) const {
  return world_.is_node(worker) ? stores_ : stores_ - stores_by_[worker];
}

bool Explorer::may_end_pause(const SimChoice& timer) const {
  if (waits_for_clock(timer)) return true;
  uint64_t looked = 0;
  for (size_t source = 0; source < sources(); ++source) {
    looked = std::max(looked, observed_[timer.worker * sources() + source].stores_at_look);
  }
  return others_stores(timer.worker) > looked;
}

// What may happen next; the first pause to end if all pause.
std::vector<SimChoice> Explorer::enabled(std::span<const SimChoice> possible) const {
  std::vector<SimChoice> choices;
  const SimChoice* first_pause = nullptr;
  for (const SimChoice& choice : possible) {
    if (choice.kind != SimChoice::Kind::kTimer) {
      choices.push_back(choice);
    } else if (pauses(choice)) {
      if (may_end_pause(choice)) choices.push_back(choice);
      if (first_pause == nullptr || choice.deadline_us < first_pause->deadline_us) {
        first_pause = &choice;
      }
    }
  }
  if (choices.empty() && first_pause != nullptr) choices.push_back(*first_pause);
  return choices;
}

// Does it commute with everything that others can ever do?
bool Explorer::exclusive(const SimChoice& choice) const {
  if (!reduce_) return false;
  switch (choice.kind) {
    case SimChoice::Kind::kPiece:
      // A node posts the next chain of one request when this one is done, and that of another
      // when it arrives: their order matters.
      if (world_.is_node(choice.worker) && choice.last_of_chain) return false;
      return !words_.shared(choice);
    case SimChoice::Kind::kDatagram:
      return !world_.is_node(choice.worker);
    case SimChoice::Kind::kTimer:
      return false;
  }
  return false;
}

bool Explorer::independent(const SimChoice& a, const SimChoice& b) const {
  using Kind = SimChoice::Kind;
  if (!reduce_ || waits_for_clock(a) || waits_for_clock(b)) return false;
  if (a.worker == b.worker) {
    if (a.kind != Kind::kPiece || b.kind != Kind::kPiece) {
      const SimChoice& piece = a.kind == Kind::kPiece ? a : b;
      return piece.kind == Kind::kPiece && !piece.last_of_chain && !owner_touches_ &&
             world_.is_node(a.worker);
    }
    return !overlap(a, b) && !(world_.is_node(a.worker) && (a.last_of_chain || b.last_of_chain));
  }
  if (a.kind == Kind::kPiece && b.kind == Kind::kPiece) {
    return !overlap(a, b) || (a.opcode == Opcode::kRead && b.opcode == Opcode::kRead);
  }
  if (!owner_touches_) return true;
  // A request may make the owner's CPU look at any word of its region, or change it.
  const SimChoice& piece = a.kind == Kind::kPiece ? a : b;
  const SimChoice& other = a.kind == Kind::kPiece ? b : a;
  return !(piece.kind == Kind::kPiece && world_.is_node(other.worker));
}

std::vector<SimChoice> Explorer::still_asleep(const std::vector<SimChoice>& sleep,
                                              const SimChoice& happens) const {
  std::vector<SimChoice> left;
  for (const SimChoice& choice : sleep) {
    if (independent(choice, happens)) left.push_back(choice);
  }
  return left;
}

size_t Explorer::choose_next(std::span<const SimChoice> possible) {
  std::vector<SimChoice> options = enabled(possible);
  if (options.empty()) {
    stuck_ = true;
    return kStop;
  }
  const SimChoice* chosen = nullptr;
  const auto local = std::find_if(options.begin(), options.end(),
                                  [this](const SimChoice& choice) { return exclusive(choice); });
  if (local != options.end()) {
    if (contains(sleep_, *local)) {
      cut_ = true;
      return kStop;
    }
    chosen = &*local;
    sleep_ = still_asleep(sleep_, *chosen);
  } else {
    if (depth_ == path_.size() && !push_frame(std::move(options))) {
      cut_ = true;
      return kStop;
    }
    const Frame& frame = path_[depth_++];
    chosen = &frame.options[frame.at];
    sleep_ = still_asleep(frame.sleep, *chosen);
  }
  for (size_t i = 0; i < possible.size(); ++i) {
    if (id_of(possible[i]) == id_of(*chosen)) return i;
  }
  CHECK(!"an execution did not repeat itself");
  return kStop;
}

// A state that has not been seen, or has been left with events asleep that are awake now; false
// if there is nothing new to do in it.
bool Explorer::push_frame(std::vector<SimChoice> options) {
  std::erase_if(options, [this](const SimChoice& choice) { return contains(sleep_, choice); });
  std::vector<uint64_t> asleep;
  for (const SimChoice& choice : sleep_) asleep.push_back(id_of(choice));
  std::sort(asleep.begin(), asleep.end());
  const auto [known, fresh] = visited_.try_emplace(state_hash(), asleep);
  if (fresh) {
    ++report_.states;
  } else {
    std::vector<uint64_t>& before = known->second;
    std::erase_if(options, [&](const SimChoice& choice) {
      return !std::binary_search(before.begin(), before.end(), id_of(choice));
    });
    std::vector<uint64_t> both;
    std::set_intersection(before.begin(), before.end(), asleep.begin(), asleep.end(),
                          std::back_inserter(both));
    before = std::move(both);
  }
  if (options.empty()) return false;
  Frame frame;
  frame.options = std::move(options);
  frame.sleep = sleep_;
  path_.push_back(std::move(frame));
  report_.depth_max = std::max<uint64_t>(report_.depth_max, path_.size());
  return true;
}

}  // namespace rdmacc
