#!/usr/bin/env python3
"""Row locks that other sessions see: FOR UPDATE and its kind are there at once under every protocol
but calvin; a session that meets one waits, for no longer than it is told to, and deadlocks end."""

import os
import re
import signal
import subprocess

from harness import Session, equal, eventually, matches, protocols, run, true, wait_until_up

JOBS = 40
WORKERS = 6
SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, grp int, v int) USING rdmacc;
CREATE INDEX t_grp ON t (grp);
CREATE TABLE jobs (id int PRIMARY KEY, state text) USING rdmacc;
CREATE TABLE done (id bigserial PRIMARY KEY, job int, worker int) USING rdmacc;
INSERT INTO t SELECT i, i / 2, 0 FROM generate_series(1, 10) i;
"""
# By the primary key, by an index, by a scan of the table.
WAYS = {"key": "id = 4", "index": "grp = 2 AND id = 4", "scan": "id + 0 = 4"}
LOCK_NO_READS = ("occ", "drtm", "mvcc", "sundial", "tictoc", "maat", "timestamp", "cicada")
AT_THEIR_TIME = ("mvcc", "timestamp", "cicada")
# A worker waits for the job that another one has, and then takes the next.
WORKER = """
BEGIN;
SELECT coalesce((SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE), 0) AS job \\gset
UPDATE jobs SET state = 'done' WHERE id = :job AND state = 'new';
INSERT INTO done (job, worker) SELECT :job, pg_backend_pid() WHERE :job > 0;
COMMIT;
"""


def set_up(box):
    box.psql(SET_UP)
    path = os.path.join(box.dir, "worker.pgbench")
    with open(path, "w") as file:
        file.write(WORKER)
    os.chmod(path, 0o644)


def locking(box):
    return [protocol for protocol in protocols(box) if protocol != "calvin"]


def session(box, protocol, extra=""):
    opened = Session(box)
    equal(opened.run(f"SET rdmacc.protocol = {protocol}; SET statement_timeout = '60s'; {extra}"),
          "", "settings")
    return opened


def holder_and_other(box, protocol):
    """Two sessions, of which the first one holds row 4, whose v is 0."""
    box.psql("UPDATE t SET v = 0")
    holder, other = session(box, protocol), session(box, protocol)
    equal(holder.run("BEGIN; SELECT v FROM t WHERE id = 4 FOR UPDATE;"), "0", protocol)
    return holder, other


def waits(box, waiter_pid, holder_pid, what):
    eventually(lambda: box.psql(f"SELECT {holder_pid} = ANY (pg_blocking_pids({waiter_pid}))") == "t",
               what)


def a_lock_is_seen_at_once(box):
    for protocol in locking(box):
        for way, condition in WAYS.items():
            said = f"{protocol}, by {way}"
            holder, other = session(box, protocol), session(box, protocol)
            equal(holder.run(f"BEGIN; SELECT v FROM t WHERE {condition} FOR UPDATE;"), "0", said)
            matches("55P03", other.run("SELECT v FROM t WHERE id = 4 FOR UPDATE NOWAIT;"), said)
            matches("55P03", other.run("SELECT v FROM t WHERE id = 4 FOR SHARE NOWAIT;"), said)
            equal(other.run("SELECT v FROM t WHERE id = 4 FOR UPDATE SKIP LOCKED;"), "", said)
            equal(holder.run("COMMIT;"), "", said)
            equal(other.run("SELECT v FROM t WHERE id = 4 FOR UPDATE NOWAIT;"), "0", said)
            holder.close()
            other.close()


def a_session_that_meets_one_waits(box):
    for protocol in locking(box):
        for way, condition in WAYS.items():
            said = f"{protocol}, by {way}"
            box.psql("UPDATE t SET v = 0 WHERE id = 4")
            holder, waiter = session(box, protocol), session(box, protocol)
            pids = waiter.backend(), holder.backend()
            holder.run("BEGIN; SELECT v FROM t WHERE id = 4 FOR UPDATE;")
            waiter.send(f"BEGIN; SELECT v FROM t WHERE {condition} FOR UPDATE;")
            waits(box, *pids, said + ": the second one waits")
            equal(holder.run("UPDATE t SET v = v + 1 WHERE id = 4; COMMIT;"), "", said)
            equal(waiter.result(), "1", said + ": what the first has written")
            equal(waiter.run("UPDATE t SET v = v + 1 WHERE id = 4; COMMIT;"), "", said)
            equal(box.psql("SELECT v FROM t WHERE id = 4"), "2", said)
            holder.close()
            waiter.close()


def writers_wait_where_reads_lock_nothing(box):
    for protocol in LOCK_NO_READS:
        for statement, answer in (("SELECT v FROM t WHERE id = 4 FOR SHARE;", "1"),
                                  ("UPDATE t SET v = v + 1 WHERE id = 4 RETURNING v;", "2"),
                                  ("DELETE FROM t WHERE id = 4 AND v = 0;", "")):
            box.psql("UPDATE t SET v = 0")
            holder, waiter = session(box, protocol), session(box, protocol)
            pids = waiter.backend(), holder.backend()
            holder.run("BEGIN; SELECT v FROM t WHERE id = 4 FOR NO KEY UPDATE;")
            waiter.send(statement)
            waits(box, *pids, f"{protocol}: {statement} waits")
            equal(holder.run("UPDATE t SET v = v + 1 WHERE id = 4; COMMIT;"), "", protocol)
            equal(waiter.result(), answer, f"{protocol}: {statement}")
            holder.close()
            waiter.close()


def sharers_are_waited_for(box):
    """A lock that several share names none of them, and a writer waits for each by its session; readers and sharers wait
    for nothing, and what a rollback has given back is not waited for."""
    for protocol in LOCK_NO_READS:
        for statement, answer in (("SELECT v FROM t WHERE id = 4 FOR UPDATE;", "0"),
                                  ("UPDATE t SET v = v + 1 WHERE id = 4 RETURNING v;", "1")):
            said = f"{protocol}: {statement}"
            box.psql("UPDATE t SET v = 0")
            gave_back, one, two, waiter = [session(box, protocol) for _ in range(4)]
            for sharer in (one, two):
                equal(sharer.run("BEGIN; SELECT v FROM t WHERE id = 4 FOR SHARE;"), "0", said)
            equal(gave_back.run("BEGIN; SAVEPOINT s; SELECT v FROM t WHERE id = 4 FOR SHARE; ROLLBACK TO s;"), "0", said)
            pid, holders = waiter.backend(), [one.backend(), two.backend()]
            waiter.send(statement)
            eventually(lambda: box.psql(f"SELECT pg_blocking_pids({pid}) && ARRAY{holders}") == "t", said + " waits")
            equal(gave_back.run("SELECT v FROM t WHERE id = 4;"), "0", said)
            equal(one.run("COMMIT;"), "", said)
            waits(box, pid, holders[1], said + " waits for the other one")
            equal(two.run("COMMIT;"), "", said)
            equal(waiter.result(), answer, said)
            for each in (one, two, gave_back, waiter):
                each.close()


def losers_to_sharers_lock_at_the_write(box):
    """Only what may have lost to sharers does: a lock that an owner was asked for by RPC names no holder, either."""
    for protocol in LOCK_NO_READS:
        for stages in ("one_sided", "rpc"):
            for lock, refused in (("UPDATE", False), ("SHARE", True)):
                said = f"{protocol}, {stages}, lost to FOR {lock}"
                box.psql("UPDATE t SET v = 0")
                holder, loser = [session(box, protocol, f"SET rdmacc.stages = {stages};") for _ in range(2)]
                equal(loser.run("SET rdmacc.replay_limit = 0;"), "", said)
                equal(holder.run(f"BEGIN; SELECT v FROM t WHERE id = 4 FOR {lock};"), "0", said)
                equal(loser.run("BEGIN; SELECT v FROM t WHERE id = 4; UPDATE t SET v = 1 WHERE id = 4;"), "0", said)
                matches("40001", loser.run("COMMIT;"), said)
                equal(loser.run("BEGIN; UPDATE t SET v = 1 WHERE id = 9;"), "", said)
                other = box.psql(f"SET rdmacc.protocol = {protocol}; SET rdmacc.stages = {stages};"
                                 "SELECT v FROM t WHERE id = 9 FOR UPDATE NOWAIT", check=False)
                equal("55P03" in other.stderr, refused, f"{said}: {other.stdout} {other.stderr}")
                loser.run("ROLLBACK;")
                holder.run("ROLLBACK;")
                holder.close()
                loser.close()


def readers_pass_where_reads_lock_nothing(box):
    """As of heaps, and one thread may read by one connection what it has locked by another. Under
    protocols that order by timestamps the holder is too late for a reader that came after it, so its block is run again."""
    reads = [f"SELECT v FROM t WHERE {condition};" for condition in WAYS.values()]
    reads += ["SELECT sum(v) FROM t;", "SELECT count(*) FROM t WHERE v < 9;",
              "SELECT t.v FROM t JOIN jobs j ON j.id = t.id WHERE t.id = 4;"]
    box.psql("TRUNCATE jobs; INSERT INTO jobs VALUES (4, 'new')")
    for protocol in LOCK_NO_READS:
        for at in ("at_commit", "at_write"):
            for write in ("", "UPDATE t SET v = v + 1 WHERE id = 4;"):
                said = f"{protocol}, {at}: {write}"
                box.psql("UPDATE t SET v = 0")
                extra = f"SET rdmacc.lock_writes = {at};"
                holder, reader = session(box, protocol, extra), session(box, protocol, extra)
                reader.run("SET statement_timeout = '5s'; SET rdmacc.auto_retry = 0;")
                equal(holder.run("BEGIN; SELECT v FROM t WHERE id = 4 FOR UPDATE;"), "0", said)
                holder.run(write or "SELECT 1;")
                equal(reader.run("BEGIN;"), "", said)
                for read in reads:
                    equal(reader.run(read), "10" if "count" in read else "0", f"{said}: {read}")
                equal(reader.run("UPDATE t SET v = 5 WHERE id = 9;"), "", said)
                refused = box.psql(f"SET rdmacc.protocol = {protocol};"
                                   "SELECT v FROM t WHERE id = 4 FOR UPDATE NOWAIT", check=False)
                matches("55P03", refused.stderr, said)
                equal(reader.run("COMMIT;"), "", said + ": the reader")
                equal(holder.run("COMMIT;"), "", said + ": the holder")
                equal(box.psql("SELECT sum(v) FROM t"), "6" if write else "5", said)
                holder.close()
                reader.close()


def a_writer_that_has_read_past_a_lock_waits_in_the_end(box):
    """What it has read may be old when it writes: the block is run again, and waits then."""
    for protocol in LOCK_NO_READS:
        holder, other = holder_and_other(box, protocol)
        pids = other.backend(), holder.backend()
        other.send("BEGIN; SELECT v FROM t WHERE id = 4; UPDATE t SET v = v + 1 WHERE id = 4; COMMIT;")
        waits(box, *pids, protocol)
        equal(holder.run("ROLLBACK;"), "", protocol)
        equal(other.result(), "0", protocol)
        equal(box.psql("SELECT v FROM t WHERE id = 4"), "1", protocol)
        holder.close()
        other.close()


def a_wait_is_bounded(box):
    for protocol in locking(box):
        holder, waiter = holder_and_other(box, protocol)
        pids = waiter.backend(), holder.backend()
        lock = "SELECT v FROM t WHERE id = 4 FOR UPDATE;"
        matches("55P03", waiter.run("SET lock_timeout = '200ms'; " + lock), protocol)
        matches("57014", waiter.run("RESET lock_timeout; SET statement_timeout = '200ms'; " + lock),
                protocol)
        waiter.run("SET statement_timeout = '60s';")
        waiter.send(lock)
        waits(box, *pids, protocol)
        equal(box.psql(f"SELECT pg_cancel_backend({pids[0]})"), "t", protocol)
        matches("57014", waiter.result(), protocol + ": cancelled")
        # After a savepoint the transaction goes on.
        waiter.run("BEGIN; SELECT v FROM t WHERE id = 5 FOR UPDATE; SAVEPOINT a;")
        matches("55P03", waiter.run("SET lock_timeout = '200ms'; " + lock), protocol)
        waiter.run("ROLLBACK TO a; UPDATE t SET v = 7 WHERE id = 5; COMMIT;")
        equal(holder.run("ROLLBACK;"), "", protocol)
        equal(waiter.run("SELECT v FROM t WHERE id = 5;"), "7", protocol)
        holder.close()
        waiter.close()


def losers_keep_to_lock_timeout(box):
    for protocol in locking(box):
        holder, loser = holder_and_other(box, protocol)
        loser.run("SET lock_timeout = '300ms'; SET statement_timeout = '30s';")
        for statement in ("INSERT INTO t VALUES (4, 0, 0);",
                          "INSERT INTO t VALUES (4, 0, 0) ON CONFLICT (id) DO UPDATE SET v = 9;",
                          "UPDATE t SET id = 4 WHERE id = 5;"):
            matches("55P03", loser.run(statement), f"{protocol}: {statement}")
        holder.run("ROLLBACK;")
        matches("23505", loser.run("INSERT INTO t VALUES (4, 0, 0);"), protocol)
        holder.close()
        loser.close()


def the_first_loser_has_its_time(box):
    """A session that has never lost before waits as long as it may, too."""
    for protocol in locking(box):
        holder, loser = holder_and_other(box, protocol)
        loser.run("SET lock_timeout = '30s'; SET statement_timeout = '700ms';")
        matches("57014", loser.run("INSERT INTO t VALUES (4, 0, 0);"), protocol)
        holder.close()
        loser.close()


def rolling_back_gives_back(box):
    """What a savepoint, or a block with EXCEPTION, has locked, where reads lock nothing."""
    for protocol in locking(box):
        gives_back = protocol in LOCK_NO_READS
        holder, other = session(box, protocol), session(box, protocol)
        said = holder.run("BEGIN; SELECT v FROM t WHERE id = 1 FOR UPDATE; SAVEPOINT a;"
                          "SELECT v FROM t WHERE id = 2 FOR UPDATE;"
                          "UPDATE t SET v = 99 WHERE id = 2; SAVEPOINT b;"
                          "SELECT v FROM t WHERE id = 3 FOR UPDATE; RELEASE b; ROLLBACK TO a;"
                          "DO $$ BEGIN PERFORM v FROM t WHERE id = 4 FOR UPDATE; PERFORM 1 / 0;"
                          " EXCEPTION WHEN division_by_zero THEN END $$;")
        true("ERROR" not in said, f"{protocol}: {said}")
        free = other.run("SELECT id FROM t WHERE id IN (1, 2, 3, 4) FOR UPDATE SKIP LOCKED;").split()
        equal(sorted(free), ["2", "3", "4"] if gives_back else [], protocol)
        equal(holder.run("UPDATE t SET v = v + 1 WHERE id = 1; COMMIT;"), "", protocol)
        equal(box.psql("SELECT count(*) FROM (SELECT FROM t WHERE v < 99 FOR UPDATE NOWAIT) q"), "10",
              f"{protocol}: no lock is left")
        holder.close()
        other.close()


def writes_lock_at_once_if_asked(box):
    for protocol in locking(box):
        for write in ("UPDATE t SET v = v + 1 WHERE id = 4", "UPDATE t SET v = v + 1 WHERE grp = 2",
                      "UPDATE t SET v = v + 1 WHERE id + 0 = 4",
                      "DELETE FROM t WHERE id = 4", "UPDATE t SET id = 44 WHERE id = 4"):
            said = f"{protocol}: {write}"
            box.psql("UPDATE t SET v = 0")
            extra = "SET rdmacc.lock_writes = at_write;"
            writer, other = session(box, protocol, extra), session(box, protocol, extra)
            pids = other.backend(), writer.backend()
            equal(writer.run(f"BEGIN; {write};"), "", said)
            matches("55P03", other.run("SELECT v FROM t WHERE id = 4 FOR UPDATE NOWAIT;"), said)
            if protocol in LOCK_NO_READS:
                other.send("UPDATE t SET v = v + 10 WHERE id = 4 RETURNING v;")
                waits(box, *pids, said)
                equal(writer.run("ROLLBACK;"), "", said)
                equal(other.result(), "10", said)
            writer.run("ROLLBACK;")
            equal(other.run("SELECT v >= 0 FROM t WHERE id = 4 FOR UPDATE NOWAIT;"), "t", said)
            writer.close()
            other.close()


def losers_let_the_holder_pass(box):
    """Where reads lock, a statement that meets a row lock loses, and is run again when it is free."""
    for protocol in ("nowait", "waitdie", "woundwait"):
        holder, other = holder_and_other(box, protocol)
        other.send("UPDATE t SET v = v + 1 WHERE id = 4 RETURNING v;")
        box.psql("SELECT pg_sleep(2)")
        equal(holder.run("UPDATE t SET v = 10 WHERE id = 4; COMMIT;"), "", protocol)
        equal(other.result(), "11", protocol)
        holder.close()
        other.close()


def deadlocks_end(box):
    for protocol in locking(box):
        for replays in (0, 20):
            said = f"{protocol}, replay_limit {replays}"
            box.psql("UPDATE t SET v = 0")
            extra = f"SET rdmacc.replay_limit = {replays}; SET deadlock_timeout = '100ms';"
            one, two = session(box, protocol, extra), session(box, protocol, extra)
            pids = one.backend(), two.backend()
            equal(one.run("BEGIN; SELECT v FROM t WHERE id = 1 FOR UPDATE;"), "0", said)
            equal(two.run("BEGIN; SELECT v FROM t WHERE id = 2 FOR UPDATE;"), "0", said)
            one.send("SELECT v FROM t WHERE id = 2 FOR UPDATE;")
            waits(box, *pids, said)
            two.send("SELECT v FROM t WHERE id = 1 FOR UPDATE;")
            if replays == 0:
                results = {each: each.result() for each in (one, two)}
                lost = [each for each in results if re.search("40P01|40001", results[each])]
                # At its time the older one is too late for a row that the younger one has read.
                true(len(lost) == 1 or (protocol in AT_THEIR_TIME and lost),
                     f"{said}: {list(results.values())}")
                for each in lost:
                    each.run("ROLLBACK;")
                winner = two if lost[0] is one else one
                equal(winner.run("UPDATE t SET v = v + 1 WHERE id < 3; COMMIT;")[:7],
                      "" if len(lost) == 1 else "WARNING", said)
            else:
                # The one that gives way is run again when the other has ended, and comes to what it
                # would have come to later.
                eventually(lambda: box.psql(
                    f"SELECT count(*) FROM pg_stat_activity WHERE pid IN {pids}"
                    " AND state = 'idle in transaction'") == "1", said + ": one has both")
                first = one if box.psql(f"SELECT state FROM pg_stat_activity WHERE pid = {pids[0]}"
                                        ) == "idle in transaction" else two
                second = two if first is one else one
                equal(first.result(), "0", said)
                equal(first.run("COMMIT;"), "", said)
                equal(second.result(), "0", said)
                equal(second.run("UPDATE t SET v = v + 1 WHERE id < 3; COMMIT;"), "", said)
            equal(box.psql("SELECT sum(v) FROM t"), "2", said)
            one.close()
            two.close()


def every_job_is_done_once(box):
    for protocol in locking(box):
        box.psql("TRUNCATE done; TRUNCATE jobs;"
                 f"INSERT INTO jobs SELECT i, 'new' FROM generate_series(1, {JOBS}) i")
        command = box.command("pgbench", "-n", "-c", str(WORKERS), "-j", "1", "-t", str(JOBS // 2),
                              "--max-tries=1000", "-f", os.path.join(box.dir, "worker.pgbench"))
        environment = dict(box.environment(), PGOPTIONS=f"-c rdmacc.protocol={protocol}")
        done = subprocess.run(command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=100)
        equal(done.returncode, 0, f"{protocol}: {done.stdout[-1500:]}")
        retried = re.search(r"number of transactions retried: (\d+)", done.stdout)
        print(f"  {protocol}: {retried.group(1) if retried else 0} retried")
        equal(box.psql("SELECT count(*), count(DISTINCT job), min(job), max(job) FROM done"),
              f"{JOBS}|{JOBS}|1|{JOBS}", f"{protocol}: jobs that were done")


def a_session_that_dies_leaves_no_lock(box):
    for protocol in locking(box):
        box.psql("UPDATE t SET v = 0")
        holder = session(box, protocol)
        backend = holder.backend()
        equal(holder.run("BEGIN; SELECT v FROM t WHERE id = 4 FOR UPDATE;"), "0", protocol)
        equal(holder.run("SELECT v FROM t WHERE id = 5 FOR SHARE;"), "0", protocol)
        os.kill(backend, signal.SIGKILL)
        holder.close()
        wait_until_up(box)
        for row in (4, 5):
            eventually(lambda p=protocol, r=row: box.psql(
                f"SET rdmacc.protocol = {p}; SELECT v FROM t WHERE id = {r} FOR UPDATE NOWAIT") == "0",
                f"{protocol}: row {row} is free again")


run(set_up, a_lock_is_seen_at_once, a_session_that_meets_one_waits,
    writers_wait_where_reads_lock_nothing, sharers_are_waited_for,
    losers_to_sharers_lock_at_the_write, readers_pass_where_reads_lock_nothing,
    a_writer_that_has_read_past_a_lock_waits_in_the_end, a_wait_is_bounded,
    losers_keep_to_lock_timeout, the_first_loser_has_its_time, rolling_back_gives_back,
    writes_lock_at_once_if_asked, losers_let_the_holder_pass, deadlocks_end,
    every_job_is_done_once, a_session_that_dies_leaves_no_lock,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
