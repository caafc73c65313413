#include "rdma/tcp/tcp_endpoint.h"

// Chains on tcp when there are pauses between verbs: they wait here, and leave in pieces, each a
// chain of its own to the peer, so that what others want of the node falls between them.

namespace rdmacc {

// True if anything left.
bool TcpEndpoint::post_delayed() {
  bool any = false;
  while (!delayed_.empty()) {
    if (!post_rest(delayed_.front())) return any;
    delayed_.pop_front();
    any = true;
  }
  return any;
}

// False: a pause holds it up.
bool TcpEndpoint::post_rest(DelayedChain& chain) {
  for (size_t i = chain.left; i < chain.verbs.size(); ++i) {
    if (delays_->due(chain.verbs, i)) continue;
    // What came before the pause does not wait for its end.
    post_piece(chain, i);
    carry_out_own();
    flush_all();
    if (!delays_->sit_out()) return false;
  }
  post_piece(chain, chain.verbs.size());
  return true;
}

// The verbs up to `end`. Each piece is waited for as the whole chain is. Once a piece has failed
// the rest does not follow: it may have relied on what was lost.
void TcpEndpoint::post_piece(DelayedChain& chain, size_t end) {
  CHECK(chain.left <= end && end <= chain.verbs.size());
  const size_t first = std::exchange(chain.left, end);
  Completion* const completion = chain.completion;
  const bool last = end == chain.verbs.size();
  if (first == end) return;
  if (completion != nullptr && completion->failed) {
    if (last) completion->finish_one();
    return;
  }
  if (completion != nullptr && !last) ++completion->outstanding;
  post(chain.node, std::span(chain.verbs).subspan(first, end - first), completion);
}

// When the worker leaves, without further pauses; those that wait for a chain are gone.
void TcpEndpoint::post_delayed_passive() {
  for (DelayedChain& chain : delayed_) {
    if (chain.completion == nullptr) post_piece(chain, chain.verbs.size());
  }
  delayed_.clear();
}

}  // namespace rdmacc
