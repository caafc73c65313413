#!/usr/bin/env python3
"""Parallel scans beside writers that keep a sum: each answer has it, also when workers are ended in
the middle of what they read, and nothing is left of those."""

import random
import time

from harness import PgbenchLoad, Session, equal, eventually, run, true
from parallel import PARALLEL, PROTOCOLS

ROWS = 50000
TOTAL = ROWS * 100
SECONDS = 4
SECONDS_MAX = 60  # for the first answer of a slow machine
TRANSFER = f"""\\set a random(1, {ROWS})
\\set b random(1, {ROWS})
\\set amount random(1, 10)
BEGIN;
UPDATE accounts SET v = v - :amount WHERE id = :a;
UPDATE accounts SET v = v + :amount WHERE id = :b;
COMMIT;
"""


def set_up(box):
    box.psql("CREATE TABLE accounts (id int PRIMARY KEY, v int) USING rdmacc;"
             f"INSERT INTO accounts SELECT i, 100 FROM generate_series(1, {ROWS}) i;")
    box.psql("ANALYZE accounts")


def reader(box, protocol):
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol};" + PARALLEL)
    return session


def workers_launched(session):
    plan = session.run("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(v) FROM accounts;")
    return int(plan.split("Workers Launched: ")[1].split()[0]) if "Workers Launched" in plan else 0


def sums_are_kept(box):
    """By one statement, by two of one block, and by joins of the table with itself."""
    for protocol in PROTOCOLS:
        session = reader(box, protocol)
        true(workers_launched(session) > 0, f"{protocol}: workers read")
        transfers = PgbenchLoad(box, TRANSFER, protocol, "-c", "2", "-R", "15")
        answers = lost = 0
        try:
            begin = time.monotonic()
            while time.monotonic() < begin + (SECONDS if answers else SECONDS_MAX):
                said = session.run("SELECT sum(v) FROM accounts;")
                if "40001" in said:
                    lost += 1
                    continue
                equal(said, str(TOTAL), f"{protocol}: the sum")
                said = session.run("BEGIN; SELECT sum(v) FROM accounts;"
                                   "SELECT sum(a.v) FROM accounts a JOIN accounts b USING (id) WHERE a.v = b.v; COMMIT;")
                if "40001" in said:
                    lost += 1
                    session.run("ROLLBACK;")
                    continue
                equal(said, f"{TOTAL}\n{TOTAL}", f"{protocol}: two sums of a block")
                answers += 1
        finally:
            true(transfers.stop(), "the writers ran until they were stopped")
        print(f"  {protocol}: {answers} answers, {lost} lost to writers")
        true(answers > 0, f"{protocol}: some had an answer")
        equal(session.run("SELECT sum(v) FROM accounts;"), str(TOTAL), "the sum at rest")
        session.close()


def leaders_that_wait_for_workers_fail_with_them(box):
    """A worker fails when its leader has been waiting for it, at a barrier of a parallel hash join."""
    fails_late = "CASE WHEN {0}.id = {1} THEN pg_sleep(0.1) IS NULL OR 1 / ({0}.id - {1}) = 0 ELSE true END"
    session = reader(box, "occ")
    session.run("SET enable_mergejoin = off; SET enable_nestloop = off; SET parallel_leader_participation = on;")
    join = ("SELECT count(*) FROM accounts a JOIN accounts b ON a.id = b.id + 1"
            " WHERE {0} AND {1};")
    true("Parallel Hash" in session.run("EXPLAIN " + join.format(fails_late.format("a", 1), fails_late.format("b", 0))), "planned with a shared hash table")
    for i in range(10):
        at = 2 + i * (ROWS // 10)
        said = session.run(join.format(fails_late.format("a", at), fails_late.format("b", at - 1)))
        true("22012" in said, said)
    equal(session.run("SELECT count(*) FROM accounts;"), str(ROWS), "the session goes on")
    session.close()


def workers_may_be_ended(box):
    """An administrator's pg_terminate_backend() of a worker is an error of its leader's statement."""
    session = reader(box, "occ")
    killer = Session(box)
    killer.run("SET client_min_messages = error;")  # of workers that have just ended
    ended = 0
    begin = time.monotonic()
    while time.monotonic() < begin + (SECONDS if ended else SECONDS_MAX):
        session.send("SELECT sum(v) FROM accounts;")
        # Whatever a machine makes of it: before they have started, while they read, and as they end.
        time.sleep(random.uniform(0.005, 0.1))
        killed = killer.run("SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                            " WHERE backend_type = 'parallel worker') k;")
        ended += int(killed)
        said = session.result()
        true(said == str(TOTAL) or "57P01" in said or "40001" in said or "08006" in said, said)
    print(f"  {ended} workers ended")
    true(ended > 0, "workers were ended")
    equal(session.run("SELECT sum(v) FROM accounts;"), str(TOTAL), "the session goes on")
    true(workers_launched(session) > 0, "with workers")
    session.close()
    killer.close()


def nothing_is_left(box):
    equal(box.psql("SELECT count(*) FROM rdmacc.in_doubt"), "0", "in doubt")
    equal(box.psql("SELECT count(*) FROM rdmacc.locks"), "0", "locks")
    eventually(lambda: box.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'")
               == "0", "no worker is left")
    equal(box.psql("SELECT sum(v) FROM accounts"), str(TOTAL), "the sum")


run(set_up, sums_are_kept, leaders_that_wait_for_workers_fail_with_them, workers_may_be_ended,
    nothing_is_left,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off", "max_worker_processes": 24})
