#pragma once
#include <span>

#include "engine/api/plain_data.h"
#include "engine/verify/finding.h"

// Whether tables are sound, found out read-only and beside whatever traffic there is: what amcheck
// is to PostgreSQL's indexes. From a coroutine, on a session without a transaction. No finding:
// sound, as far as the README says what is looked at. Not ok: it could not be found out; kNotFound:
// a table is not there (any more).

namespace rdmacc {

struct VerifyReport {
  std::vector<Finding> findings;
  uint64_t rows = 0;  // of the tables, as a scan had them
};

// options.units: and the units of all nodes that no table leads to.
Result<VerifyReport> verify_tables(Session& session, std::span<const TableToVerify> tables,
                                   const VerifyOptions& options);

}  // namespace rdmacc
