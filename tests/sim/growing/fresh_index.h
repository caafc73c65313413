#pragma once
#include <string>

#include "engine/session.h"

// An ordered index in a table that its transaction has made: filled before the commit, in place
// where the protocol lets it, with entries that follow from their number.

namespace rdmacc {

Status fill_index(Session& session, TableId index, uint64_t entries);
// `doubt`: what is not there, or not in order.
Status read_index(Session& session, TableId index, uint64_t entries, std::string& doubt);

}  // namespace rdmacc
