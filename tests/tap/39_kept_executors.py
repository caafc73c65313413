#!/usr/bin/env python3
"""Executors that sessions keep for their prepared statements: portals beside each other, rows that are not
fetched, what other sessions change meanwhile, and what becomes of memory."""

from harness import Session, equal, matches, run, true
from wire import Wire

COUNT = ("SELECT count(*) FROM pg_backend_memory_contexts"
         " WHERE parent = 'rdmacc kept executors' AND name = 'ExecutorState'")
# With what hangs below them.
BYTES = ("SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE parent = 'rdmacc kept executors'"
         " OR parent = 'ExecutorState' AND name = 'rdmacc key lookup'")


def set_up(box):
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;"
             "INSERT INTO t SELECT i, i FROM generate_series(1, 20) i")


def portals_beside_each_other(box):
    """Each has its own parameters, its own rows, and its own place in them."""
    wire = Wire(box)
    wire.query("SET plan_cache_mode = force_generic_plan")
    wire.prepare("look", "SELECT id, v FROM t WHERE id = ANY ($1::int[])")
    wire.prepare("add", "UPDATE t SET v = v + $2::int WHERE id = $1::int")
    equal(wire.sync(), [], "statements")
    for turn in range(4):
        wire.query("BEGIN")
        wire.bind("one", "look", "{1,2,3}")
        wire.bind("two", "look", "{4,5}")
        wire.execute("one", rows=1)
        wire.execute("two", rows=1)
        wire.bind("three", "add", 1, 0)
        wire.bind("four", "add", 20, 100)
        wire.execute("four")
        wire.execute("three")
        wire.execute("one", rows=1)
        if turn % 2 == 0:
            wire.close_portal("two")  # not all of its rows are fetched
        wire.execute("one")
        equal(wire.sync(), [["1", "1"], "suspended", ["4", "4"], "suspended", "UPDATE 1", "UPDATE 1",
                            ["2", "2"], "suspended", ["3", "3"], "SELECT 1"], f"turn {turn}")
        wire.query("COMMIT")
    equal(wire.query("SELECT v FROM t WHERE id = 20"), [["420"], "SELECT 1"], "what was added")
    equal(wire.query(COUNT)[0], ["2"], "executors that are kept")
    wire.close()


def an_error_under_other_portals(box):
    wire = Wire(box)
    wire.query("SET plan_cache_mode = force_generic_plan")
    wire.prepare("divide", "UPDATE t SET v = 100 / $2::int WHERE id = $1::int RETURNING v")
    wire.sync()
    for divisor, said in ((2, [["50"], "UPDATE 1"]), (0, ["error 22012"]), (4, [["25"], "UPDATE 1"]),
                          (0, ["error 22012"]), (0, ["error 22012"]), (5, [["20"], "UPDATE 1"])):
        wire.bind("", "divide", 2, divisor)
        wire.execute("")
        equal(wire.sync(), said, f"divided by {divisor}")
    wire.query("BEGIN")
    wire.bind("left", "divide", 2, 10)
    wire.bind("right", "divide", 3, 0)
    wire.execute("right")
    equal(wire.sync(), ["error 22012"], "beside another portal")
    wire.query("ROLLBACK")
    wire.bind("", "divide", 2, 50)
    wire.execute("")
    equal(wire.sync(), [["2"], "UPDATE 1"], "after both")
    box.psql("UPDATE t SET v = id")
    wire.close()


def other_sessions_change_the_table(box):
    session = Session(box)
    session.run("SET plan_cache_mode = force_generic_plan; PREPARE look(int) AS SELECT id, v::int FROM t WHERE id = $1;"
                "PREPARE add(int) AS UPDATE t SET v = v + 1 WHERE id = $1;"
                "PREPARE put(int) AS INSERT INTO t (id, v) VALUES ($1, 1);")
    once = "EXECUTE add(1); EXECUTE look(1); EXECUTE put({0}); DELETE FROM t WHERE id = {0};"
    for change, row in (("SELECT", "1|2"), ("ALTER TABLE t ADD w text DEFAULT 'w'", "1|3"),
                        ("CREATE INDEX t_v ON t (v)", "1|4"), ("ALTER TABLE t ALTER v TYPE bigint", "1|5"),
                        ("DROP INDEX t_v", "1|6"), ("ALTER TABLE t DROP w", "1|7"),
                        ("VACUUM ANALYZE t", "1|8"), ("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t", "1|9")):
        box.psql(change)
        equal(session.run(once.format(100)), row, f"after {change}")
        session.run(once.format(101))
        box.psql("UPDATE t SET v = v - 1 WHERE id = 1")
    box.psql("ALTER TABLE t SET ACCESS METHOD heap")
    equal(session.run("EXECUTE add(1); EXECUTE look(1);"), "1|10", "as a heap")
    box.psql("ALTER TABLE t SET ACCESS METHOD rdmacc; UPDATE t SET v = id")
    equal(session.run("EXECUTE add(1); EXECUTE look(1);"), "1|2", "as it was")
    session.close()


def memory_does_not_grow(box):
    """A thousand executions of each kind take what ten take, and all goes with the statements."""
    session = Session(box)
    session.run("SET plan_cache_mode = force_generic_plan; PREPARE look(int) AS SELECT * FROM t WHERE id = $1;"
                "PREPARE locked(int) AS SELECT v FROM t WHERE id = $1 FOR UPDATE;"
                "PREPARE add(int) AS UPDATE t SET v = v + 1 WHERE id = $1 RETURNING v;"
                "PREPARE put(int) AS INSERT INTO t VALUES ($1, 1); PREPARE gone(int) AS DELETE FROM t WHERE id = $1;")
    each = "EXECUTE look(1); EXECUTE locked(1); EXECUTE add(1); EXECUTE put(1000); EXECUTE gone(1000);"
    session.run(each * 10)
    equal(session.run(COUNT + ";"), "5", "executors that are kept")
    before = int(session.run(BYTES + ";"))
    for _ in range(10):
        session.run(each * 100)
    equal(int(session.run(BYTES + ";")), before, "bytes")
    print(f"  {before / 5 / 1024:.1f} KB each")
    session.run("DEALLOCATE ALL;")
    equal(session.run(COUNT + ";"), "0", "executors that are kept without a statement")
    equal(box.psql("SELECT v FROM t WHERE id = 1"), "1012", "what was added")
    session.close()


def canceled_within(box):
    """While it waits for a row that another session has locked."""
    holder, session = Session(box), Session(box)
    session.run("SET plan_cache_mode = force_generic_plan; PREPARE locked(int) AS SELECT id FROM t WHERE id = $1 FOR UPDATE;"
                "SET statement_timeout = '300ms'; EXECUTE locked(5); EXECUTE locked(6);")
    holder.run("BEGIN; SELECT FROM t WHERE id = 5 FOR UPDATE;")
    matches("statement timeout", session.run("EXECUTE locked(5);"), "the one that waits")
    equal(session.run("EXECUTE locked(6);"), "6", "another row")
    holder.run("ROLLBACK;")
    equal(session.run("EXECUTE locked(5);"), "5", "when it is free")
    holder.close()
    session.close()
    true("leak" not in box.log_text(), "the server warns of no leak")


def blocks_that_cannot_be_run_again(box):
    """A statement that was executed often before ends a block's journal like one that never was."""
    box.psql("CREATE SEQUENCE numbers")
    for call in ("pg_advisory_lock(id)", "pg_advisory_xact_lock(id)", "pg_try_advisory_xact_lock(id, 1)",
                 "pg_try_advisory_lock_shared(id)", "setval('numbers', id)"):
        session = Session(box)
        session.run("SET rdmacc.protocol = occ; SET plan_cache_mode = force_generic_plan;"
                    f"PREPARE effect(int) AS SELECT {call} IS NULL FROM t WHERE id = $1;")
        session.run("EXECUTE effect(7);" * 8)
        session.run("SELECT pg_advisory_unlock_all(); BEGIN; EXECUTE effect(7);"
                    "UPDATE t SET v = v + 1 WHERE id = 8;")
        box.psql("SET rdmacc.protocol = occ; UPDATE t SET v = v + 1 WHERE id = 8")
        matches("40001", session.run("COMMIT;"), f"a conflict after {call}")
        session.close()


def statements_are_counted(box):
    """Whichever library is named first: with another one before ours nothing is kept."""
    for libraries, kept in (("pg_rdmacc,pg_stat_statements", "2"), ("pg_stat_statements,pg_rdmacc", "0")):
        box.stop()
        box.settings["shared_preload_libraries"] = libraries
        box.start()
        box.wait_for_nodes()
        box.psql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset();"
                 "DROP TABLE IF EXISTS s; CREATE TABLE s (id int PRIMARY KEY, v int) USING rdmacc; INSERT INTO s VALUES (1, 0)")
        session = Session(box)
        session.run("SET plan_cache_mode = force_generic_plan; PREPARE look(int) AS SELECT v FROM s WHERE id = $1;"
                    "PREPARE add(int) AS UPDATE s SET v = v + 1 WHERE id = $1;")
        session.run("EXECUTE look(1); EXECUTE add(1);" * 500)
        equal(session.run(COUNT + ";"), kept, f"executors that are kept with {libraries}")
        equal(session.run("SELECT query ~ 'UPDATE', calls, rows FROM pg_stat_statements"
                          " WHERE query ~ 'PREPARE (look|add)' ORDER BY 1;"), "f|500|500\nt|500|500", libraries)
        session.close()


run(set_up, portals_beside_each_other, an_error_under_other_portals, other_sessions_change_the_table,
    memory_does_not_grow, canceled_within, blocks_that_cannot_be_run_again, statements_are_counted)
