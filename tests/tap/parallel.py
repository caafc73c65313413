"""Scans that parallel workers share with their leader."""

PROTOCOLS = ("occ", "mvcc", "timestamp")
# As much by workers as can be.
PARALLEL = ("SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
            "SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 3;")
