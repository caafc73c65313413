#include "rdma/shm/shm_endpoint.h"

#include <algorithm>

#include "rdma/fabric/check_chain.h"

// One-sided verbs on shared memory. The next poll() first prefetches what all chains posted since
// the last one will touch, in one go, and then carries them out: the cache misses of all coroutines
// overlap. ring() itself does not prefetch: a prefetch whose page is not in the TLB holds up what
// comes behind it until the page tables have been walked, and only walks that follow each other
// closely are made at the same time.

namespace rdmacc {
namespace {

constexpr size_t kPrefetchChains = 32;   // at a time: what the first-level cache has room for
constexpr size_t kPrefetchLinesMax = 8;  // of one verb; the hardware follows a longer run itself

// Inlined by force: as a function of its own it has no effect that GCC 12 knows of, and every call
// of it is dropped.
[[gnu::always_inline]] inline void prefetch(const Verb& verb, const std::byte* region) {
  const size_t lead = verb.remote_offset % kCacheLineBytes;
  const std::byte* line = region + verb.remote_offset - lead;
  const size_t lines = (lead + verb.bytes + kCacheLineBytes - 1) / kCacheLineBytes;
  for (size_t i = 0; i < lines && i < kPrefetchLinesMax; ++i, line += kCacheLineBytes) {
    __builtin_prefetch(line);
  }
}

}  // namespace

void ShmEndpoint::ring(NodeId node, std::span<const Verb> chain, Completion* completion) {
  check_chain(node, chain, control_.topology());
  DCHECK(completion == nullptr || completion->outstanding > 0);
  std::byte* region = regions_.at(node);
  posted_.chains.push_back(Chain{region, posted_.verbs.size(), chain.size(), completion});
  posted_.verbs.insert(posted_.verbs.end(), chain.begin(), chain.end());
}

bool ShmEndpoint::carry_out_posted() {
  if (delays_ != nullptr) return carry_out_delayed();
  if (posted_.chains.empty()) return false;
  CHECK(executing_.chains.empty());
  std::swap(posted_, executing_);
  size_t prefetched = 0;
  for (size_t i = 0; i < executing_.chains.size(); ++i) {
    if (i == prefetched) prefetched = prefetch_from(i);
    const Chain& chain = executing_.chains[i];
    if (chain.region == nullptr) {
      if (chain.completion != nullptr) chain.completion->failed = true;
    } else {
      carry_out_chain({executing_.verbs.data() + chain.first_verb, chain.verb_count}, chain.region);
    }
    if (chain.completion != nullptr) chain.completion->finish_one();
  }
  executing_.clear();
  return true;
}

// The same with pauses, and without prefetches. A pause that the process goes on during leaves the
// rest of executing_ to later polls.
bool ShmEndpoint::carry_out_delayed() {
  if (executing_.chains.empty()) std::swap(posted_, executing_);
  bool any = false;
  while (next_chain_ < executing_.chains.size()) {
    const Chain& chain = executing_.chains[next_chain_];
    if (chain.region == nullptr) {
      if (chain.completion != nullptr) chain.completion->failed = true;
    } else if (!carry_out_rest(chain)) {
      return any;
    }
    ++next_chain_;
    next_verb_ = 0;
    if (chain.completion != nullptr) chain.completion->finish_one();
    any = true;
  }
  executing_.clear();
  next_chain_ = 0;
  return any;
}

// False: a pause holds it up.
bool ShmEndpoint::carry_out_rest(const Chain& chain) {
  const std::span<const Verb> verbs(executing_.verbs.data() + chain.first_verb, chain.verb_count);
  CHECK(next_verb_ <= verbs.size());
  for (; next_verb_ < verbs.size(); ++next_verb_) {
    if (!delays_->due(verbs, next_verb_) && !delays_->sit_out()) return false;
    cpu_.carry_out(verbs[next_verb_], chain.region);
  }
  return true;
}

// When the worker leaves: what is not waited for must still happen; it may be the release of a
// lock. Those that wait for the rest are gone.
void ShmEndpoint::carry_out_passive() {
  for (const Posted* verbs : {&executing_, &posted_}) {
    for (const Chain& chain : std::span(verbs->chains).subspan(next_chain_)) {
      const size_t done = std::exchange(next_verb_, 0);
      if (chain.completion != nullptr || chain.region == nullptr) continue;
      carry_out_chain({verbs->verbs.data() + chain.first_verb + done, chain.verb_count - done},
                      chain.region);
    }
    next_chain_ = 0;
  }
}

// Prefetches a window of chains from the `first` on; the index behind its last one.
size_t ShmEndpoint::prefetch_from(size_t first) const {
  DCHECK(first < executing_.chains.size());
  const size_t end = std::min(first + kPrefetchChains, executing_.chains.size());
  for (size_t i = first; i < end; ++i) {
    const Chain& chain = executing_.chains[i];
    if (chain.region == nullptr) continue;
    const Verb* verbs = executing_.verbs.data() + chain.first_verb;
    for (size_t v = 0; v < chain.verb_count; ++v) prefetch(verbs[v], chain.region);
  }
  return end;
}

void ShmEndpoint::carry_out_chain(std::span<const Verb> verbs, std::byte* region) {
  for (const Verb& verb : verbs) cpu_.carry_out(verb, region);
}

}  // namespace rdmacc
