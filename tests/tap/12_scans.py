#!/usr/bin/env python3
"""count(*) and scanning writers under a constant load of writers: each ends after few attempts,
under every protocol."""

import subprocess
import time

from harness import PgbenchLoad, Session, Unmet, equal, eventually, protocols, retried, run, true

ROWS = 20000
WRITERS = 8
SCANS = 3
# Four lost scans, then one alone; a few more, since a gate that does not drain in time on a busy
# machine is opened for all again, and then twice as many attempts are made before the next.
ATTEMPTS_MAX = 40
DUMPS_MAX = 10  # the first, unless the gate did not drain in time


# pgbench updates, inserts and deletes rows.
SCRIPT = f"""\\set id random(1, {ROWS})
\\set other random({ROWS + 1}, {2 * ROWS})
UPDATE scanned SET value = value + 1 WHERE id = :id;
INSERT INTO scanned VALUES (:other, 0) ON CONFLICT DO NOTHING;
DELETE FROM scanned WHERE id = :other;
"""


def writers_under(box, protocol):
    return PgbenchLoad(box, SCRIPT, protocol, "-c", str(WRITERS), "-j", "2")


def attempts_of(session, sql, what):
    """How often one session has to try it, and what it then said. The session has to be one: it
    knows how often a transaction has lost."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        said = session.run(sql)
        if "ERROR" not in said:
            return attempt, said
        true("40001" in said, f"{what}: {said}")
    raise Unmet(f"{what}: no end after {ATTEMPTS_MAX} attempts: {said}")


def set_up(box):
    box.psql("CREATE TABLE scanned (id int PRIMARY KEY, value int) USING rdmacc;"
             f"INSERT INTO scanned SELECT i, 0 FROM generate_series(1, {ROWS}) i;"
             "CREATE TABLE summary (id int PRIMARY KEY, n int) USING rdmacc;"
             "INSERT INTO summary VALUES (1, 0)")


def scans_end(box, protocol):
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol};")
    # Writers that were stopped between an INSERT and its DELETE have left rows.
    attempts_of(session, f"DELETE FROM scanned WHERE id > {ROWS};", "DELETE")
    writers = writers_under(box, protocol)
    try:
        eventually(lambda: session.run("SELECT true FROM scanned WHERE value > 0 LIMIT 1;") == "t",
                   "rows are written")
        most = 0
        for _ in range(SCANS):
            attempts, count = attempts_of(session, "SELECT count(*) FROM scanned;", "count(*)")
            true(ROWS <= int(count) <= ROWS + WRITERS, f"{count} rows")
            most = max(most, attempts)
            attempts, _ = attempts_of(
                session, "UPDATE summary SET n = (SELECT count(*) FROM scanned) WHERE id = 1;",
                "a writer that scans")
            most = max(most, attempts)
        entries = box.psql("SELECT exclusive_entries FROM rdmacc.gate")
        print(f"  {protocol}: at most {most} attempts, {entries} exclusive entries until now")
        before = attempts_of(session, "SELECT sum(value) FROM scanned;", "sum(value)")[1]
        time.sleep(0.5)
        after = attempts_of(session, "SELECT sum(value) FROM scanned;", "sum(value)")[1]
        true(int(after) > int(before), f"writers go on: {before}, then {after}")
    finally:
        true(writers.stop(), "the writers ran until they were stopped")
        session.close()


def scans_end_under_every_protocol(box):
    for protocol in protocols(box):
        scans_end(box, protocol)
    entries = int(box.psql("SELECT exclusive_entries FROM rdmacc.gate"))
    true(entries > 0, "a transaction had exclusive gate mode")
    equal(box.psql("SELECT exclusive_worker IS NULL FROM rdmacc.gate"), "t", "none has it now")


def dumps_end_under_every_protocol(box):
    """pg_dump is a session of its own, so that nothing is known of its losses."""
    for protocol in protocols(box):
        retried(box, f"DELETE FROM scanned WHERE id > {ROWS}")  # see scans_end()
        writers = writers_under(box, protocol)
        environment = box.environment()
        environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
        try:
            for attempt in range(1, DUMPS_MAX + 1):
                dump = subprocess.run(
                    box.command("pg_dump", "--serializable-deferrable", "-t", "scanned"),
                    env=environment, cwd="/", text=True, capture_output=True, timeout=60)
                if dump.returncode == 0:
                    break
                true("could not serialize" in dump.stderr, dump.stderr)
            equal(dump.returncode, 0, f"{protocol}: pg_dump, {attempt} times: {dump.stderr}")
            rows = sum(line[:1].isdigit() for line in dump.stdout.splitlines())
            true(ROWS <= rows <= ROWS + WRITERS, f"{protocol}: {rows} rows")
            print(f"  {protocol}: dump number {attempt} ended")
        finally:
            true(writers.stop(), "the writers ran until they were stopped")


def an_idle_transaction_does_not_stop_scans(box):
    """It keeps the gate from draining, and a row from being read: scans go on failing, and none
    else waits for them for long."""
    idle = Session(box)
    idle.run("SET rdmacc.protocol = nowait; BEGIN; UPDATE scanned SET value = -1 WHERE id = 1;")
    session = Session(box)
    session.run("SET rdmacc.protocol = nowait;")
    for _ in range(12):
        true("40001" in session.run("SELECT count(*) FROM scanned;"), "the row is locked")
    equal(session.run("SELECT id FROM scanned WHERE id = 2;"), "2", "another row")
    idle.run("ROLLBACK;")
    attempts_of(session, "SELECT count(*) FROM scanned;", "count(*)")
    idle.close()
    session.close()


def a_transaction_that_has_lost_reads_no_copy(box):
    """Of a small table that a statement scans again and again."""
    box.psql("CREATE TABLE small (id int PRIMARY KEY, n int) USING rdmacc; CREATE TABLE other (id int PRIMARY KEY) USING rdmacc;"
             "INSERT INTO small SELECT i, i % 7 FROM generate_series(1, 50) i; INSERT INTO other VALUES (1);"
             "CREATE SEQUENCE calls; CREATE FUNCTION lose() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
             " UPDATE other SET id = id; RETURN 0; EXCEPTION WHEN serialization_failure THEN RETURN 1; END $$")
    holder, session = Session(box), Session(box)
    for each in (holder, session):
        each.run("SET rdmacc.protocol = nowait; SET rdmacc.lock_writes = at_write; SET rdmacc.replay_limit = 0; BEGIN;")
    holder.run("UPDATE other SET id = id;")
    said = session.run("SELECT CASE WHEN nextval('calls') = 10 THEN lose() END,"
                       " (SELECT count(*) FROM small s WHERE s.n = o.n) FROM small o LIMIT 20;")
    true("40001" in said, f"a function has caught the conflict, and the statement goes on: {said}")
    holder.run("ROLLBACK;")
    session.run("ROLLBACK;")
    holder.close()
    session.close()


run(set_up, scans_end_under_every_protocol, dumps_end_under_every_protocol, an_idle_transaction_does_not_stop_scans,
    a_transaction_that_has_lost_reads_no_copy,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off",
              # What a session sees that tries by itself.
              "rdmacc.auto_retry": 0})
