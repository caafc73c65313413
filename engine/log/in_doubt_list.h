#pragma once
#include <vector>

#include "engine/log/gtid.h"
#include "engine/storage/messages.h"

namespace rdmacc {

// What node 0 answers when asked what is in doubt. A list is complete when `unresolved` is 0:
// then nothing in doubt can be of a worker that died before it was asked for.
struct InDoubtList {
  std::vector<InDoubt> transactions;
  uint64_t unresolved = 0;  // dead workers that have not been looked at yet
};

void write_in_doubt_list(MessageWriter& out, const InDoubtList& list);
// False unless it is well formed, to the message's end.
bool read_in_doubt_list(MessageReader& in, InDoubtList& list);

}  // namespace rdmacc
