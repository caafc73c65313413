#!/usr/bin/env python3
"""Tables that begin anew, by TRUNCATE or for a load, beside transactions that have read them and have no lock of
PostgreSQL's on them any more; what a load's own query sees; and loads that lose on their way."""

from harness import Session, equal, eventually, run, sqlstate, true

ROWS = 5000
LOCKING = ("nowait", "waitdie", "woundwait")  # what they read
LOAD = f"INSERT INTO t SELECT i, 'some words, as in a text' FROM generate_series(1, {ROWS}) i"
SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TABLE u (id int PRIMARY KEY, v int) USING rdmacc;
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM v FROM u WHERE id = 1; PERFORM pg_sleep(3); RETURN NULL; END $$;
CREATE TABLE w (id int PRIMARY KEY, v text) USING rdmacc;
CREATE TRIGGER slowly AFTER INSERT ON w FOR EACH STATEMENT EXECUTE FUNCTION slowly();
INSERT INTO u VALUES (1, 1);
"""
READS = {
    "all": "SELECT count(*) FROM t",
    "a key": "SELECT count(*) FROM t WHERE id = 77",
    "a range": "SELECT count(*) FROM t WHERE id BETWEEN 70 AND 80",
    "the largest": "SELECT coalesce(max(id), 0) FROM t",
}


def set_up(box):
    box.psql(SET_UP)


def file_of(box, table="t"):
    return box.psql(f"SELECT pg_relation_filenode('{table}')")


def reader(box, protocol, read):
    """A session that has read the empty table below a savepoint which is no more."""
    session = Session(box)
    equal(session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; SAVEPOINT s; {read}; ROLLBACK TO s;"), "0",
          f"{protocol}, {read}")
    return session


def a_load_waits_for_those_that_have_locked_what_they_read(box):
    for protocol in LOCKING:
        for name, read in READS.items():
            box.psql("TRUNCATE t")
            session, loader = reader(box, protocol, read), Session(box)
            loader.run(f"SET rdmacc.protocol = {protocol}; SET rdmacc.auto_retry = 10000;")
            loader.send(f"{LOAD};")
            again = session.run(f"SELECT pg_sleep(0.3); {read};").strip()
            equal(again, "0", f"{protocol}, {name}: what is read once more")
            equal(session.run("COMMIT;"), "", f"{protocol}, {name}: its commit")
            equal(loader.result(), "", f"{protocol}, {name}: the load")
            equal(box.psql("SELECT count(*) FROM t"), str(ROWS), f"{protocol}, {name}: rows")
            session.close()
            loader.close()


def truncate_does_not_pass_them(box):
    for protocol in LOCKING:
        for name, read in READS.items():
            box.psql("TRUNCATE t; INSERT INTO t VALUES (-5, 'one')")
            session = Session(box)
            session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; SAVEPOINT s; {read}; ROLLBACK TO s;")
            truncate = f"SET rdmacc.protocol = {protocol}; TRUNCATE t"
            equal(sqlstate(box.psql(truncate, check=False)), "40001", f"{protocol}, {name}: TRUNCATE beside it")
            equal(session.run("SELECT v FROM t WHERE id = -5; COMMIT;"), "one", f"{protocol}, {name}: the row")
            box.psql(truncate)
            equal(box.psql("SELECT count(*) FROM t"), "0", f"{protocol}, {name}: rows in the end")
            session.close()


def refresh_does_not_pass_them(box):
    box.psql("CREATE MATERIALIZED VIEW seen USING rdmacc AS SELECT sum(v) AS v FROM u")
    for protocol in LOCKING:
        session = Session(box)
        session.run(f"SET rdmacc.protocol = {protocol}; BEGIN; SAVEPOINT s; SELECT v FROM seen; ROLLBACK TO s;")
        refresh = f"SET rdmacc.protocol = {protocol}; REFRESH MATERIALIZED VIEW seen"
        equal(sqlstate(box.psql(refresh, check=False)), "40001", f"{protocol}: REFRESH beside it")
        equal(session.run("SELECT v FROM seen; COMMIT;"), "1", f"{protocol}: what it reads again")
        equal(box.psql(refresh), "", f"{protocol}: REFRESH in the end")
        session.close()


def a_transaction_may_truncate_what_it_has_read(box):
    for protocol in LOCKING:
        box.psql(LOAD)
        said = box.psql(f"SET rdmacc.protocol = {protocol}; BEGIN; SELECT count(*) FROM t; SELECT max(id) FROM t;"
                        " TRUNCATE t; SELECT count(*) FROM t; COMMIT")
        equal(said.split(), [str(ROWS), str(ROWS), "0"], protocol)


def others_notice_it_at_their_commit(box):
    for protocol in ("occ", "drtm"):
        box.psql("TRUNCATE t")
        session = reader(box, protocol, READS["all"])
        box.psql(f"SET rdmacc.protocol = {protocol}; {LOAD}")
        said = session.run("SELECT count(*) FROM t; UPDATE u SET v = v WHERE id = 1; COMMIT;")
        true("40001" in said, f"{protocol}: {said}")
        session.close()


def makes_xml(box):
    """Not every server does."""
    return box.psql("SELECT setting ~ 'with-libxml' FROM pg_config WHERE name = 'CONFIGURE'") == "t"


def queries_of_a_loads_own_query(box):
    """They see the table as it was before."""
    ways = ["(SELECT string_agg(s.word, ',') FROM ts_stat('SELECT to_tsvector(v) FROM t WHERE id = 5') s)"]
    if makes_xml(box):
        ways.append("query_to_xml('SELECT count(*) AS c FROM t WHERE id = 5', false, true, '')::text")
    for counted in ways:
        for statement in ("{}", "BEGIN; TRUNCATE t; {}; COMMIT"):
            box.psql("TRUNCATE t")
            load = ("INSERT INTO t SELECT i, CASE WHEN i < 2000 THEN 'some words, as in a text'"
                    f" ELSE coalesce({counted}, 'none') END FROM generate_series(1, 3000) i")
            box.psql(statement.format(load))
            seen = box.psql("SELECT DISTINCT v FROM t WHERE id >= 2000")
            true("<c>0</c>" in seen or seen == "none", f"{counted}, {statement}: {seen}")


def conditions_of_domains_that_look_at_the_table(box):
    """They see rows one by one, as they come."""
    box.psql("CREATE TABLE small (id int, v int) USING rdmacc;"
             "CREATE FUNCTION room(int) RETURNS bool LANGUAGE sql AS 'SELECT count(*) < 100 FROM small';"
             "CREATE DOMAIN d AS int CHECK (room(VALUE)); CREATE TYPE pair AS (a int, b d);")
    for value in ("g::d", "(array[g]::d[])[1]", "(row(g, g)::pair).b", "('(1,' || g || ')')::pair",
                  "json_populate_record(null::pair, json_build_object('b', g))"):
        counted = value if value.endswith("d") or "[1]" in value or ".b" in value else f"({value}).b"
        load = f"INSERT INTO small SELECT {counted}, 1 FROM generate_series(1, 1000) g"
        equal(sqlstate(box.psql(load, check=False)), "23514", value)
        equal(box.psql("SELECT count(*) FROM small"), "0", f"{value}: rows")
    load = ("INSERT INTO small SELECT x.a, 1 FROM generate_series(1, 1000) g, XMLTABLE('/i' PASSING"
            " xmlparse(CONTENT '<i>' || g || '</i>') COLUMNS a d PATH '.') x")
    if makes_xml(box):
        equal(sqlstate(box.psql(load, check=False)), "23514", "XMLTABLE")


def a_load_whose_reads_have_changed_is_run_again(box):
    session, other = Session(box), Session(box)
    other.run("SET rdmacc.protocol = occ; TRUNCATE w; SELECT rdmacc.stat_reset();")
    session.send("SET rdmacc.protocol = occ; " + LOAD.replace("INTO t", "INTO w") + ";")
    eventually(lambda: other.run("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep';") == "1",
               "the trigger has read")
    other.run("UPDATE u SET v = v + 1 WHERE id = 1;")
    equal(session.result(), "", "the load")
    equal(box.psql("SELECT count(*) FROM w"), str(ROWS), "rows")
    equal(box.psql("SELECT retries FROM rdmacc.stat_retries WHERE protocol = 'occ'"), "1", "retries")
    session.close()
    other.close()


def a_load_that_loses_has_the_table_to_itself_again(box):
    """In the write set there is no room for it."""
    box.psql("TRUNCATE w")
    before = file_of(box, "w")
    loader, holder = Session(box), Session(box)
    loader.run("SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000; SET rdmacc.max_write_set = '1MB';")
    holder.run("SET rdmacc.protocol = nowait; BEGIN; UPDATE u SET v = v WHERE id = 1;")
    loader.send("INSERT INTO w SELECT i, repeat('x', 900) FROM generate_series(1, 5000) i;")
    eventually(lambda: int(box.psql("SELECT retries FROM rdmacc.stat_retries WHERE protocol = 'nowait'")) > 0,
               "it has lost")
    holder.run("COMMIT;")
    equal(loader.result(), "", "the load")
    equal(box.psql("SELECT count(*) FROM w"), "5000", "rows")
    true(file_of(box, "w") != before, "a new file")
    loader.close()
    holder.close()


run(set_up, a_load_waits_for_those_that_have_locked_what_they_read, truncate_does_not_pass_them,
    refresh_does_not_pass_them,
    a_transaction_may_truncate_what_it_has_read, others_notice_it_at_their_commit, queries_of_a_loads_own_query,
    conditions_of_domains_that_look_at_the_table, a_load_whose_reads_have_changed_is_run_again,
    a_load_that_loses_has_the_table_to_itself_again,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.durability": "memory"})
