#pragma once
#include <span>

#include "engine/txn/stages/scan_work.h"

// Scanning groups of a table's index: the gap header by the protocol, then every tuple that the
// group's entries name, by the protocol (docs/protocols.md §2).

namespace rdmacc {

// Tuples that one request may return; a fuller group is scanned one-sided.
constexpr size_t kScanTuplesPerMessage = 1024;

// `tuples_max`: groups with more entries end as kTooLarge (0 = no limit).
Status scan_groups(StageContext& context, std::span<ScanWork> groups, size_t tuples_max);

}  // namespace rdmacc
