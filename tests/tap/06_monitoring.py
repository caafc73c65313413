#!/usr/bin/env python3
"""What views show of other sessions: locks, statistics of sessions that have ended, the gate, and
the stage plans that stages = auto has chosen."""

from harness import Session, equal, eventually, matches, run, sqlstate, true
from smallbank import SmallBank

ROWS = 20000


def set_up(box):
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc"
             " WITH (autovacuum_enabled = off);"
             f"INSERT INTO t SELECT i, 0 FROM generate_series(1, {ROWS}) i;"
             "CREATE DATABASE other")
    box.psql("CREATE EXTENSION rdmacc", "other")
    # The nodes lock groups of the index that they split, until it has its size.
    eventually(lambda: number(box, "SELECT count(*) FROM rdmacc.locks") == 0, "no locks")


def number(box, sql):
    return int(box.psql(sql) or 0)


def holder_of(box, sql):
    """A session with a transaction under nowait that has run `sql`, and its process."""
    session = Session(box)
    pid = session.backend()
    equal(session.run(f"SET rdmacc.protocol = nowait; BEGIN; {sql};"), "", "the holder")
    return session, pid


def locks_of_another_session_are_seen(box):
    holder, pid = holder_of(box, "UPDATE t SET v = 1 WHERE id IN (1, 2, 3)")
    columns = "relation::text, header, mode, granted, holders, pid"
    equal(box.psql(f"SELECT DISTINCT {columns} FROM rdmacc.locks"),
          f"t|record|exclusive|t|1|{pid}", "locks")
    equal(number(box, "SELECT count(DISTINCT key_hash) FROM rdmacc.locks"), 3, "keys")
    equal(box.psql(f"SELECT bool_and(since BETWEEN xact_start - interval '1 s' AND now())"
                   f" FROM rdmacc.locks JOIN pg_stat_activity USING (pid) WHERE pid = {pid}"),
          "t", "since")
    equal(box.psql("SELECT count(*), count(relation), min(datname) FROM rdmacc.locks l"
                   " JOIN pg_database d ON d.oid = l.database", "other"),
          "3|0|postgres", "locks seen from another database")
    holder.run("COMMIT;")
    equal(number(box, "SELECT count(*) FROM rdmacc.locks"), 0, "locks after the commit")
    holder.close()


def readers_share_a_lock_if_asked_to(box):
    read = "SET rdmacc.protocol = nowait; SET rdmacc.lock_mode = %s; BEGIN; SELECT v FROM t WHERE id = 1;"
    readers = [Session(box), Session(box)]
    for reader in readers:
        matches(r"^\d+$", reader.run(read % "shared"), "a reader")
    equal(box.psql("SELECT relation::text, mode, granted, holders, worker, pid, since"
                   " FROM rdmacc.locks"), "t|shared|t|2|||", "locks")
    for mode in ("exclusive", "shared"):
        lost = box.psql(f"SET rdmacc.protocol = nowait; SET rdmacc.lock_mode = {mode};"
                        " UPDATE t SET v = 2 WHERE id = 1", check=False)
        equal(sqlstate(lost), "40001", f"a writer, {mode}")
    readers[1].run("COMMIT;")
    equal(readers[0].run("UPDATE t SET v = 3 WHERE id = 1;"), "", "the reader that is left")
    # It keeps its share until its commit, which takes the lock for itself.
    equal(box.psql("SELECT mode, holders FROM rdmacc.locks"), "shared|1", "locks")
    equal(readers[0].run("COMMIT;"), "", "the commit")
    equal(box.psql("SELECT count(*) FROM rdmacc.locks"), "0", "locks after the commit")
    matches(r"^\d+$", readers[0].run(read % "exclusive"), "a reader that does not share")
    matches("40001", readers[1].run(read % "exclusive"), "another reader")
    for reader in readers:
        reader.run("ROLLBACK;")
        reader.close()


def many_locks_are_all_shown(box):
    holder, pid = holder_of(box, "UPDATE t SET v = v + 1")
    equal(number(box, f"SELECT count(*) FROM rdmacc.locks WHERE header = 'record'"
                      f" AND pid = {pid}"), ROWS, "locks")
    equal(number(box, "SELECT count(DISTINCT node) FROM rdmacc.locks"), 2, "nodes")
    holder.run("ROLLBACK;")
    equal(number(box, "SELECT count(*) FROM rdmacc.locks"), 0, "locks after the end")
    holder.close()


def a_session_that_ends_leaves_no_locks(box):
    holder, pid = holder_of(box, "UPDATE t SET v = 1 WHERE id < 10")
    box.psql(f"SELECT pg_terminate_backend({pid})")
    eventually(lambda: number(box, "SELECT count(*) FROM rdmacc.locks") == 0, "no locks")
    equal(number(box, f"SELECT count(*) FROM rdmacc.gate_sessions WHERE pid = {pid}"), 0, "gate")
    holder.close()


def statistics_outlive_their_sessions(box):
    box.psql("SELECT rdmacc.stat_reset()")
    plan = "protocol = 'nowait' AND code = 0"
    for count in range(1, 4):
        box.psql("SET rdmacc.protocol = nowait; SET rdmacc.stages = rpc;"
                 " UPDATE t SET v = v + 1 WHERE id = 5")
        equal(number(box, f"SELECT committed FROM rdmacc.stat_plans WHERE {plan}"), count,
              "committed")
        true(number(box, "SELECT count FROM rdmacc.stat_stages WHERE protocol = 'nowait'"
                         " AND stage = 'commit' AND primitive = 'rpc'") >= count, "commit stages")
    box.psql("SELECT rdmacc.stat_reset()")
    equal(number(box, f"SELECT count(*) FROM rdmacc.stat_plans WHERE {plan}"), 0, "after the reset")


def aborts_are_counted_by_reason(box):
    count = "SELECT count FROM rdmacc.stat_aborts WHERE protocol = 'nowait' AND reason = '%s'"
    before = number(box, count % "lock_held"), number(box, count % "none")
    holder, _ = holder_of(box, "UPDATE t SET v = 1 WHERE id = 9")
    # Each attempt would count.
    lost = box.psql("SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 0;"
                    " UPDATE t SET v = 2 WHERE id = 9", check=False)
    equal(sqlstate(lost), "40001", "the second writer")
    holder.run("ROLLBACK;")
    equal(number(box, count % "lock_held"), before[0] + 1, "conflicts")
    equal(number(box, count % "none"), before[1] + 1, "rollbacks")
    holder.close()


def waiters_at_the_gate_are_shown(box):
    holder, pid = holder_of(box, "SELECT v FROM t WHERE id = -1")
    switches = number(box, "SELECT switches FROM rdmacc.gate")
    waiter = Session(box)
    waiting_pid = waiter.backend()
    waiter.run("SET rdmacc.protocol = occ;")
    waiter.send("SELECT v FROM t WHERE id = -1;")
    eventually(lambda: box.psql("SELECT open_protocol, next_protocol, inside, waiting"
                                " FROM rdmacc.gate") == "nowait|occ|1|1", "one waits")
    equal(box.psql("SELECT state, protocol, pid, waiting IS NULL OR waiting > '0'"
                   " FROM rdmacc.gate_sessions ORDER BY state"),
          f"inside|nowait|{pid}|t\nwaiting|occ|{waiting_pid}|t", "sessions")
    first = box.psql("SELECT waiting FROM rdmacc.gate_sessions WHERE state = 'waiting'")
    equal(box.psql(f"SELECT waiting > '{first}' FROM rdmacc.gate_sessions"
                   " WHERE state = 'waiting'"), "t", "it waits longer")
    holder.run("COMMIT;")
    equal(waiter.result(), "", "the waiter")
    equal(box.psql(f"SELECT open_protocol, next_protocol, switches > {switches},"
                   " max_switch_us >= mean_switch_us FROM rdmacc.gate"), "occ||t|t", "gate")
    waiter.close()
    holder.close()


def auto_stages_settle(box):
    bank = SmallBank(box, 1000)
    bank.create()
    bank.load()
    box.psql("SELECT rdmacc.stat_reset()")
    result = bank.run(2, 2, "nowait", "auto")
    true(result["committed_per_second"] > 0 and result["failed"] == 0, f"load: {result}")
    equal(bank.money(), bank.expected_money(), "money")
    transactions, explored, plans, settled = [int(n) for n in box.psql(
        "SELECT sum(transactions), sum(explored), count(*), max(transactions - explored)"
        " FROM rdmacc.stat_plans WHERE protocol = 'nowait'").split("|")]
    print(f"  {transactions} transactions, {explored} explored, {plans} plans")
    true(plans > 1 and explored > 0, "several plans were tried")
    # Two sessions that each learn for at most 64 transactions per stage, and explore few later.
    true(explored <= 2 * 4 * 64 + transactions / 4, "exploration is bounded")
    true(settled > 0, "some plan was thought best")
    matches("auto", box.psql("SET rdmacc.protocol = nowait; SET rdmacc.stages = auto;"
                             " EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM checking WHERE custid = 1"),
            "EXPLAIN")


run(set_up, locks_of_another_session_are_seen, readers_share_a_lock_if_asked_to, many_locks_are_all_shown,
    a_session_that_ends_leaves_no_locks, statistics_outlive_their_sessions,
    aborts_are_counted_by_reason, waiters_at_the_gate_are_shown, auto_stages_settle,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
