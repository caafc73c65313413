#!/usr/bin/env python3
"""Parallel workers that find no place in the cluster: the leader's statement has all rows, and the
session goes on without workers."""

from harness import Session, equal, run, true

ROWS = 20000
PARALLEL = ("SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
            "SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 3;")


def set_up(box):
    box.psql("CREATE TABLE numbers (id int PRIMARY KEY, v int) USING rdmacc;"
             f"INSERT INTO numbers SELECT i, 1 FROM generate_series(1, {ROWS}) i;")
    box.psql("ANALYZE numbers")


def all_rows_are_read(box):
    session = Session(box)
    session.run(PARALLEL)
    equal(session.run("SELECT v FROM numbers WHERE id = 1;"), "1", "it has its own place")
    true("Gather" in session.run("EXPLAIN SELECT sum(v) FROM numbers;"), "planned for workers")
    others = []
    while len(others) < 20:  # until there is no place
        others.append(Session(box))
        said = others[-1].run("SELECT v FROM numbers WHERE id = 1;")
        if "53300" in said:
            break
        equal(said, "1", "another session")
    true(len(others) < 20, "all places are taken")
    for _ in range(3):
        equal(session.run("SELECT sum(v) FROM numbers;"), str(ROWS), "the sum")
        equal(session.run("SELECT count(*) FROM numbers a JOIN numbers b USING (id);"), str(ROWS), "the join")
    true("Gather" not in session.run("EXPLAIN SELECT sum(v) FROM numbers;"), "planned without workers")
    for other in others:
        other.close()
    session.close()


run(set_up, all_rows_are_read,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off", "rdmacc.max_workers": 8,
              "max_worker_processes": 24})
