#!/usr/bin/env python3
"""A queue: workers that take jobs by SKIP LOCKED, under each protocol. Every job is handed out
once."""

import os
import re
import signal
import subprocess

from harness import Session, equal, eventually, protocols, run, true, wait_until_up

JOBS = 60
WORKERS = 4
SET_UP = """
CREATE TABLE jobs (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE taken (id bigserial PRIMARY KEY, job int, worker int) USING rdmacc;
"""
# The statement by itself, and a job that is worked on between two statements; each takes a moment, or
# the first worker that is ready might do them all.
SCRIPTS = {
    "statement": """
WITH job AS (DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id
                                            FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id)
INSERT INTO taken (job, worker) SELECT id, pg_backend_pid() FROM job WHERE pg_sleep(0.002) IS NOT NULL;
""",
    "transaction": """
BEGIN;
SELECT coalesce((SELECT id FROM jobs FOR UPDATE SKIP LOCKED LIMIT 1), 0) AS job \\gset
INSERT INTO taken (job, worker) SELECT :job, pg_backend_pid() WHERE :job > 0 AND pg_sleep(0.002) IS NOT NULL;
DELETE FROM jobs WHERE id = :job;
COMMIT;
""",
}


def set_up(box):
    box.psql(SET_UP)
    for name, script in SCRIPTS.items():
        path = os.path.join(box.dir, name + ".pgbench")
        with open(path, "w") as file:
            file.write(script)
        os.chmod(path, 0o644)


def work_off(box, protocol, script):
    box.psql(f"TRUNCATE taken; INSERT INTO jobs SELECT i, 'job' FROM generate_series(1, {JOBS}) i")
    # A worker that finds nothing free has still its other tries.
    command = box.command("pgbench", "-n", "-c", str(WORKERS), "-j", "1", "-t", str(JOBS),
                          "--max-tries=1000", "-f", os.path.join(box.dir, script + ".pgbench"))
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
    done = subprocess.run(command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)
    equal(done.returncode, 0, f"{protocol}: {done.stdout[-1500:]}")
    retried = re.search(r"number of transactions retried: (\d+)", done.stdout)
    workers = int(box.psql("SELECT count(DISTINCT worker) FROM taken"))
    print(f"  {protocol}, {script}: by {workers} workers,"
          f" {retried.group(1) if retried else 0} retried")
    equal(box.psql("SELECT count(*), count(DISTINCT job), min(job), max(job) FROM taken"),
          f"{JOBS}|{JOBS}|1|{JOBS}", f"{protocol}, {script}: jobs that were handed out")
    equal(box.psql("SELECT count(*) FROM jobs"), "0", f"{protocol}, {script}: jobs left")
    true(workers > 1, f"{protocol}, {script}: one worker did it all")


def every_job_is_handed_out_once(box):
    for protocol in protocols(box):
        for script in SCRIPTS:
            work_off(box, protocol, script)


def a_worker_that_dies_leaves_no_lock(box):
    """Its locks are older than any log of its transaction."""
    for protocol in ("nowait", "occ", "mvcc", "sundial"):
        box.psql("TRUNCATE jobs; INSERT INTO jobs VALUES (1, 'job')")
        chosen = f"SET rdmacc.protocol = {protocol}; "
        worker = Session(box)
        backend = worker.backend()
        equal(worker.run(chosen + "BEGIN; SELECT id FROM jobs FOR UPDATE SKIP LOCKED;"), "1",
              f"{protocol}: the worker's job")
        equal(box.psql(chosen + "SELECT id FROM jobs FOR UPDATE SKIP LOCKED"), "", "the others'")
        os.kill(backend, signal.SIGKILL)
        worker.close()
        wait_until_up(box)
        eventually(lambda p=chosen: box.psql(p + "SELECT id FROM jobs FOR UPDATE SKIP LOCKED") == "1",
                   f"{protocol}: the job is free again")


# The join of a row and what it refers to, one by one and with all of it read before any row is locked.
JOINS = {
    "one by one": ("SET enable_hashjoin = off; SET enable_mergejoin = off;", "i.id = l.item"),
    "sorted": ("SET enable_hashjoin = off; SET enable_nestloop = off;", "i.id + 0 = l.item"),
    "hashed": ("SET enable_mergejoin = off; SET enable_nestloop = off;", "i.id + 0 = l.item"),
}


def a_row_that_changed_since_is_joined_anew(box):
    """A scan that skips locks is no part of the read set: a row that it has read may be another one when it
    is locked, and is joined with what its own columns say then, or with nothing. What it was joined with
    is fetched once more for that, by its TID."""
    box.psql("CREATE TABLE line (no int PRIMARY KEY, item int) USING rdmacc;"
             "CREATE TABLE item (id int PRIMARY KEY) USING rdmacc;"
             "INSERT INTO item SELECT generate_series(1, 9000); ANALYZE item")
    for protocol in ("occ", "mvcc"):
        for name, (plan, condition) in JOINS.items():
            box.psql("TRUNCATE line; INSERT INTO line SELECT i, 3 FROM generate_series(1, 6) i")
            join_while_rows_change(box, protocol, name, plan, condition)


def join_while_rows_change(box, protocol, name, plan, condition):
    joins = Session(box)
    joins.send(f"SET rdmacc.protocol = {protocol}; {plan}"
               f"SELECT l.item, i.id FROM line l LEFT JOIN item i ON {condition}"
               " WHERE pg_sleep(0.2 + l.no * 0) IS NOT NULL FOR UPDATE OF l SKIP LOCKED;")
    changes = Session(box)
    changes.run(f"SET rdmacc.protocol = {protocol}; SET lock_timeout = '50ms'; SELECT pg_sleep(0.5);")
    for no in range(1, 7):
        changes.run(f"UPDATE line SET item = 5 WHERE no = {no};")
    said = joins.result()
    true("ERROR" not in said, f"{protocol}, {name}: {said}")
    pairs = [line.split("|") for line in said.split("\n") if "|" in line]
    changed = int(changes.run("SELECT count(*) FROM line WHERE item = 5;"))
    print(f"  {protocol}, {name}: {changed} rows changed meanwhile, {len(pairs)} were joined")
    true(changed > 0, f"{protocol}, {name}: no row has changed while the others were joined")
    true(len(pairs) > 0, f"{protocol}, {name}: nothing was joined")
    equal([pair for pair in pairs if pair[1] not in (pair[0], "")], [],
          f"{protocol}, {name}: pairs that fit no condition")
    joins.close()
    changes.close()


run(set_up, every_job_is_handed_out_once, a_worker_that_dies_leaves_no_lock, a_row_that_changed_since_is_joined_anew,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
