#!/usr/bin/env python3
"""A hot standby, whose nodes follow the primary's WAL: what sessions read there while rows change,
while it stops, crashes and writes checkpoints, and when it is promoted."""

import os
import signal
import time

import outage
from copies import catch_up, standby_of, wait_until_follows
from harness import (PgbenchLoad, Session, ask, equal, eventually, fails_with, node_pids, run, sqlstate, true,
                     wait_until_up)
from storm import (ACCOUNTS, DIFFERENT_ACCOUNTS, INITIAL, SCHEMA, Client, check_journal, check_tables,
                   stop_all)
from verify import verify

SETTINGS = {"rdmacc.nodes": 2, "rdmacc.node_memory": "128MB", "fsync": "on",
            "rdmacc.checkpoint_timeout": "1h"}
MANY = 20000
standby = None  # of all tests; the last one promotes it


def set_up(box):
    """The standby of the tests that follow."""
    global standby
    box.psql(SCHEMA)
    box.psql("CREATE TABLE many (id int PRIMARY KEY, v int, note text) USING rdmacc;"
             f"INSERT INTO many SELECT i, 0, md5(i::text) FROM generate_series(1, {MANY}) AS i;"
             "CREATE INDEX ON many (v);"
             "CREATE TABLE beat (id int PRIMARY KEY, n int) USING rdmacc; INSERT INTO beat VALUES (1, 0)")
    standby = standby_of(box, SETTINGS)
    equal(ask(standby, "SELECT count(*), sum(v) FROM many"), f"{MANY}|0", "rows of the backup")


def shows_the_same(box, *queries):
    catch_up(box, standby)
    for query in queries:
        equal(ask(standby, query), ask(box, query), query)


def statements_arrive(box):
    """Each kind of statement, at once, whichever way its transaction commits."""
    rows = "SELECT id, v, note FROM kinds ORDER BY id"
    box.psql("CREATE TABLE kinds (id int PRIMARY KEY, v int, note text) USING rdmacc;"
             "CREATE TABLE twin (n int) USING heap")
    for sql in (
            "INSERT INTO kinds SELECT i, i, 'a' FROM generate_series(1, 50) AS i",
            "UPDATE kinds SET v = v + 100 WHERE id % 2 = 0",
            "DELETE FROM kinds WHERE id % 5 = 0",
            "INSERT INTO kinds VALUES (5, 5, 'again'), (6, 6, 'more')"
            " ON CONFLICT (id) DO UPDATE SET note = 'met'",
            "BEGIN; INSERT INTO kinds VALUES (101, 1, 'in both'); INSERT INTO twin VALUES (1); COMMIT",
            "BEGIN; DELETE FROM kinds WHERE id = 101; INSERT INTO twin VALUES (2); ROLLBACK",
            "BEGIN; UPDATE kinds SET v = 0 WHERE id = 1; SAVEPOINT s; DELETE FROM kinds;"
            " ROLLBACK TO s; COMMIT",
            "INSERT INTO kinds SELECT i, 1, repeat('long', 3000) FROM generate_series(1001, 1200) AS i",
            "CREATE INDEX kinds_v ON kinds (v)",
            "ALTER TABLE kinds ALTER v TYPE bigint",
            "ALTER TABLE kinds ADD COLUMN more int DEFAULT 7",
            "BEGIN; TRUNCATE kinds; INSERT INTO kinds VALUES (1, 1, 'new'); ROLLBACK",
            "BEGIN; TRUNCATE kinds; INSERT INTO kinds SELECT i, i, 'new'"
            " FROM generate_series(1, 3000) AS i; COMMIT"):
        box.psql(sql)
        shows_the_same(box, rows, "SELECT count(*) FROM twin",
                       "SET enable_seqscan = off; SELECT id FROM kinds WHERE v BETWEEN 1 AND 7 ORDER BY id",
                       "SELECT id, v FROM kinds WHERE id = 1")
    box.psql("DROP TABLE kinds")
    catch_up(box, standby)
    fails_with(standby, "SELECT * FROM kinds", "42P01")


def refused(_):
    """What a standby refuses of any table."""
    for sql in ("INSERT INTO beat VALUES (2, 2)", "UPDATE beat SET n = 1", "DELETE FROM beat",
                "SELECT * FROM beat FOR UPDATE", "TRUNCATE beat", "CREATE TABLE t (i int) USING rdmacc"):
        fails_with(standby, sql, "25006")
    equal(ask(standby, "SET rdmacc.protocol = nowait; SELECT n FROM beat"), "0", "another protocol")


def transactions_are_whole(box):
    """Beside clients that move money, of whom each statement sees all of a move or nothing, and one
    that changes all rows of a table at once."""
    clients = [Client(box, number, "SET rdmacc.protocol = occ;") for number in (1, 2)]
    writer = PgbenchLoad(box, "UPDATE many SET v = v + 1;", "occ")
    reader = Session(standby)
    seen = set()
    looks = 0
    try:
        begun = time.monotonic()
        while looks <= 5 or time.monotonic() < begun + 6:
            true(time.monotonic() < begun + 90, f"{looks} looks in 90 s")
            equal(ask(standby, DIFFERENT_ACCOUNTS), "0", "accounts that differ from the journal")
            equal(ask(standby, "SELECT sum(v) FROM accounts"), str(ACCOUNTS * INITIAL), "money")
            for _ in range(20):
                seen.add(reader.run("SELECT count(DISTINCT v) FROM many;"))
            twice = reader.run(
                "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM many;"
                "SELECT pg_sleep(0.02); SELECT sum(v) FROM many; COMMIT;").split()
            true("40001" in " ".join(twice) or twice[0] == twice[-1], f"one point: {twice}")
            looks += 1
    finally:
        stop_all(clients)
        running = writer.stop()
        reader.close()
    true(running, "rows change all the time")
    eventually(lambda: box.psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'UPDATE many%'"
                                " AND state = 'active'") == "0", "the last update ends")
    equal(seen, {"1"}, "values of rows that change together")
    true(all(client.committed for client in clients), f"clients commit beside {looks} looks")
    shows_the_same(box, "SELECT count(*), sum(v) FROM many", "SELECT * FROM accounts ORDER BY id",
                   "SELECT count(*), sum(amount) FROM journal")
    verify(standby, "a standby")


def nothing_is_seen_half_behind(box):
    """Sessions that begin while the nodes have much to catch up with."""
    readers = [Session(standby) for _ in range(4)]
    seen = set()
    for _ in range(4):
        standby.psql("SELECT pg_wal_replay_pause()")
        for _ in range(8):
            box.psql("UPDATE many SET v = v + 1")
        position = box.psql("SELECT pg_current_wal_flush_lsn()")
        eventually(lambda: standby.psql(f"SELECT pg_last_wal_receive_lsn() >= '{position}'") == "t",
                   "the standby has it")
        for reader in readers:
            reader.send("SELECT pg_wal_replay_resume();" +
                        "SELECT 'values ' || count(DISTINCT v) FROM many;" * 30)
        for reader in readers:
            seen.update(line for line in reader.result().split("\n") if line)
    for reader in readers:
        reader.close()
    equal(seen, {"values 1"}, "values of rows that change together")
    shows_the_same(box, "SELECT count(*), sum(v) FROM many")


def rows_are_no_older_than_the_catalog(box):
    """Of a transaction that writes both kinds of tables a session sees the rows if it sees the rest."""
    box.psql("CREATE TABLE both_rows (n int PRIMARY KEY) USING rdmacc;"
             "CREATE TABLE both_heap (n int PRIMARY KEY) USING heap")
    catch_up(box, standby)
    writer = Session(box)
    writer.send("".join(f"BEGIN; INSERT INTO both_rows VALUES ({n}); INSERT INTO both_heap VALUES ({n});"
                        f" COMMIT; CREATE TABLE new_{n} (n int) USING rdmacc; INSERT INTO new_{n} VALUES ({n});"
                        for n in range(1, 200)))
    for _ in range(40):
        older = ask(standby, "SELECT count(*) FROM both_heap WHERE n NOT IN (SELECT n FROM both_rows)")
        equal(older, "0", "rows that lack")
        last = standby.psql("SELECT max(n) FROM both_heap") or "0"
        if int(last) > 1:
            equal(ask(standby, f"SELECT n FROM new_{int(last) - 1}"), str(int(last) - 1), "a new table")
    writer.result()
    writer.close()


def a_table_is_never_seen_between_truncate_and_insert(box):
    box.psql("CREATE TABLE refilled (n int PRIMARY KEY) USING rdmacc; INSERT INTO refilled VALUES (0)")
    catch_up(box, standby)
    writer = Session(box)
    writer.send("".join(f"BEGIN; TRUNCATE refilled; INSERT INTO refilled VALUES ({n}); COMMIT;"
                        for n in range(1, 150)))
    readers = [Session(standby) for _ in range(3)]
    for reader in readers:
        reader.send("SELECT 'rows ' || count(*) FROM refilled;" * 400)
    for reader in readers:
        equal(set(reader.result().split("\n")), {"rows 1"}, "a table that always has one row")
        reader.close()
    writer.result()
    writer.close()


def a_load_is_in_no_readers_way(box):
    """It does not have the table to itself: the lock would come along, and wait for the reader here."""
    box.psql("CREATE TABLE filled (id int PRIMARY KEY, v text) USING rdmacc")
    catch_up(box, standby)
    reader = Session(standby)
    equal(reader.run("BEGIN; SELECT count(*) FROM filled;"), "0", "an empty table")
    box.psql("INSERT INTO filled SELECT i, repeat('x', 40) FROM generate_series(1, 5000) i")
    catch_up(box, standby)
    equal(ask(standby, "SELECT count(*) FROM filled"), "5000", "rows of the load")
    equal(reader.run("COMMIT; SELECT 'here';"), "here", "the reader")
    reader.close()


def an_idle_reader_is_in_no_way(box):
    """A transaction that reads and then does nothing, under whatever protocol its session asks for."""
    readers = [Session(standby) for _ in range(3)]
    before = ask(standby, "SELECT sum(n) FROM beat")
    for reader, protocol in zip(readers, ("nowait", "occ", "mvcc")):
        equal(reader.run(f"SET rdmacc.protocol = {protocol};"
                         "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT n FROM beat;"), before, "read")
    for _ in range(3):
        box.psql("UPDATE beat SET n = n + 1")
        shows_the_same(box, "SELECT n FROM beat")
    for reader in readers:
        again = reader.run("SELECT n FROM beat;")
        true(again == before or "40001" in again, f"read again: {again}")
        reader.run("ROLLBACK;")
        equal(reader.run("SELECT n FROM beat;"), str(int(before) + 3), "read anew")
        reader.close()


def checkpoints_let_wal_go(box):
    """A standby keeps the WAL from its own last checkpoint of rows on."""
    held = "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 'rdmacc'"
    before = standby.psql(held)
    box.psql("UPDATE many SET v = v + 1; UPDATE beat SET n = 0")
    catch_up(box, standby)
    standby.psql("SELECT rdmacc.checkpoint()")
    true(standby.psql(f"SELECT ({held}) > '{before}'") == "t", "the slot moves on")
    made = standby.psql("SELECT checkpoints, tables FROM rdmacc.stat_durability").split("|")
    true(int(made[0]) >= 1 and int(made[1]) >= 9, f"checkpoints, tables: {made}")
    # An open transaction of the primary keeps the WAL of its rows, and nothing is lost with it.
    session = Session(box)
    session.run("BEGIN; INSERT INTO both_heap VALUES (-1); INSERT INTO both_rows VALUES (-1);")
    box.psql("UPDATE beat SET n = 7")
    catch_up(box, standby)
    standby.psql("SELECT rdmacc.checkpoint()")
    session.run("COMMIT;")
    session.close()
    outage.kill_everything(standby)
    standby.start()
    wait_until_follows(standby)
    shows_the_same(box, "SELECT n FROM beat", "SELECT count(*), sum(v) FROM many",
                   "SELECT count(*), min(n) FROM both_rows")
    loaded = standby.psql("SELECT loaded_rows FROM rdmacc.stat_durability")
    true(int(loaded) >= MANY, f"rows loaded: {loaded}")


def it_starts_again(box):
    """After each kind of end, with what came meanwhile."""
    for number, end in enumerate((lambda: standby.stop("fast"), lambda: standby.stop("immediate"),
                                  lambda: outage.kill_everything(standby))):
        end()
        box.psql(f"UPDATE beat SET n = {number}; INSERT INTO both_rows VALUES (1000 + {number})")
        standby.start()
        shows_the_same(box, "SELECT n FROM beat", "SELECT count(*), sum(n) FROM both_rows",
                       "SELECT count(*), sum(v) FROM many")


def its_processes_die(box):
    """Nodes, the process that applies, a session: the next look is right or says that it cannot be."""
    session = Session(standby)
    for victim, number, find in (
            ("a node", signal.SIGKILL, lambda: node_pids(standby)[1]),
            ("the applier", signal.SIGTERM, lambda: outage.worker_pid(standby, "rdmacc checkpointer")),
            ("a session", signal.SIGKILL, session.backend)):
        pid = find()
        box.psql("UPDATE beat SET n = n + 1; UPDATE many SET v = v + 1 WHERE id <= 1000")
        os.kill(pid, number)
        result = standby.psql("SELECT count(*), count(DISTINCT note) FROM many", check=False)
        if result.returncode == 0:
            equal(result.stdout.strip(), f"{MANY}|{MANY}", f"rows after the end of {victim}")
        else:  # 00000: psql has not been let in
            true(sqlstate(result)[:2] in ("57", "08", "00"), f"after the end of {victim}: {result}")
        eventually(lambda: standby.psql("SELECT 1") == "1", "the server is up")
        wait_until_follows(standby)
        shows_the_same(box, "SELECT n FROM beat", "SELECT count(*), sum(v) FROM many")
    session.close()


def tables_are_replaced_before_it_dies(box):
    """By others of the same name in the nodes, as a load does that meets long rows: the next applier comes
    to the first one, and the nodes have the second one already."""
    box.psql("BEGIN; CREATE TABLE fitted (id int PRIMARY KEY, t text) USING rdmacc;"
             "INSERT INTO fitted SELECT i, repeat('x', 300) FROM generate_series(1, 500) i; COMMIT;")
    shows_the_same(box, "SELECT count(*), sum(length(t)) FROM fitted")
    for victim, number in ((outage.worker_pid(standby, "rdmacc checkpointer"), signal.SIGTERM),
                           (node_pids(standby)[1], signal.SIGKILL)):
        os.kill(victim, number)
        box.psql("UPDATE fitted SET t = t || 'y' WHERE id <= 20")
        eventually(lambda: standby.psql("SELECT 1") == "1", "the server is up")
        wait_until_follows(standby)
        shows_the_same(box, "SELECT count(*), sum(length(t)) FROM fitted")


def promotion(box):
    """All that was acknowledged is there, sessions go on, and write."""
    box.psql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    box.psql("SELECT pg_reload_conf()")
    eventually(lambda: box.psql("SELECT sync_state FROM pg_stat_replication") == "sync",
               "the standby is synchronous")
    reader, writer = Session(standby), Session(standby)
    equal(reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM many;"), str(MANY), "rows")
    equal(writer.run("SELECT count(*) FROM many;"), str(MANY), "rows")
    clients = [Client(box, number, "") for number in (11, 12)]
    eventually(lambda: all(client.committed for client in clients), "all clients commit", 30)
    time.sleep(1)
    outage.kill_everything(box)
    stop_all(clients)
    standby.run("pg_ctl", "-D", standby.data, "-w", "-t", "30", "promote", check=True)
    written = writer.run("INSERT INTO beat VALUES (100, 100); SELECT count(*) FROM beat;")
    equal(written, "2", "a session of before writes")
    again = reader.run("SELECT count(*) FROM many;")
    true(again == str(MANY) or "40001" in again, f"a transaction of before reads: {again}")
    refusal = reader.run("INSERT INTO beat VALUES (101, 101);")
    true("25006" in refusal or "25P02" in refusal, f"it stays read-only: {again}, {refusal}")
    equal(reader.run("ROLLBACK; INSERT INTO beat VALUES (101, 101); SELECT count(*) FROM beat;"), "3",
          "the next one writes")
    for session in (reader, writer):
        session.close()
    standby.psql("DELETE FROM beat WHERE id >= 100")
    wait_until_up(standby)
    check_journal(standby, clients, all_kept=True)
    check_tables(standby)
    verify(standby, "a promoted standby")
    outage.killed_whole(standby)  # with a checkpoint, and a timeline, of its own
    outage.wait_for_rows(standby)
    check_journal(standby, clients, all_kept=True)


run(set_up, statements_arrive, refused, transactions_are_whole, nothing_is_seen_half_behind,
    rows_are_no_older_than_the_catalog, a_table_is_never_seen_between_truncate_and_insert,
    a_load_is_in_no_readers_way, an_idle_reader_is_in_no_way, checkpoints_let_wal_go, it_starts_again,
    its_processes_die, tables_are_replaced_before_it_dies, promotion,
    settings=SETTINGS)
