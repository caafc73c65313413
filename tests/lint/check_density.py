"""How often code states what it relies on, by CHECK and DCHECK: at least LEAST times in 1,000 lines
of each room where callers, peers or crashes can bring about what must not be. Other rooms (planners,
DDL, SQL functions, workloads, benchmarks) stand on these and answer users with errors. A static
measure says nothing of a check's worth: reviews do, and tests that a wrong one would fail."""

import fnmatch
import os
import re

LEAST = 20  # in 1,000 lines of .cc files, blank ones and comments included
CHECKED = re.compile(r"\bD?CHECK\(")

# Public entry points, what is parsed from peers, ownership and the ends of transactions.
SCOPE = (
    "rdma/fabric", "rdma/coroutine", "rdma/rpc", "rdma/bootstrap", "rdma/shm", "rdma/sim",
    "rdma/tcp", "rdma/verbs",
    "engine/storage/layout", "engine/storage/wire", "engine/storage/owner", "engine/cluster",
    "engine/log", "engine/txn/driver", "engine/txn/stages", "engine/txn/remote",
    "engine/txn/transaction", "engine/protocols/calvin",
    "engine", "engine/index", "engine/node",
    "pg_rdmacc/bridge", "pg_rdmacc/server", "pg_rdmacc/xact", "pg_rdmacc/codec",
    "pg_rdmacc/relation", "pg_rdmacc/row", "pg_rdmacc/index", "pg_rdmacc/table", "pg_rdmacc/query",
)
# Files of these rooms that only read what users write, or name things: their errors are messages.
LEFT_OUT = (
    "*_main.cc",
    "rdma/bootstrap/cluster_config.cc",   # a user's file
    "pg_rdmacc/server/guc.cc",            # tables of settings
    "pg_rdmacc/server/node_process.cc",   # between fork and exec nothing may be said
)


def in_scope(path):
    return (path.endswith(".cc") and os.path.dirname(path) in SCOPE
            and not any(fnmatch.fnmatch(path, pattern) for pattern in LEFT_OUT))


def counts(sources):
    """Per room: lines, checks."""
    rooms = {}
    for path, text in sources.items():
        if not in_scope(path):
            continue
        lines, checks = rooms.get(os.path.dirname(path), (0, 0))
        rooms[os.path.dirname(path)] = (lines + text.count("\n"),
                                        checks + len(CHECKED.findall(text)))
    return rooms


def check_density(sources):
    for room, (lines, checks) in sorted(counts(sources).items()):
        if checks * 1000 < LEAST * lines:
            yield f"{room}: {checks} checks in {lines} lines, less than {LEAST} in 1,000"
