#pragma once
#include "engine/txn/stages/find.h"

namespace rdmacc {

// The first look at keys, which nearly always is the last: where the location cache says, or at the
// entry of the key's home bucket, which is read without its gap header. A key that is found needs
// its record and nothing else (docs/sequences.md §2.2). Keys that it does not find stay kPending,
// for the walk that looks at their gap headers, too. As find_keys() otherwise.
Status look_first(StageContext& context, std::span<KeyWork> keys);

}  // namespace rdmacc
