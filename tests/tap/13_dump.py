#!/usr/bin/env python3
"""What outlives a table's server: dumps that are restored, and upgrades of the extension."""

import subprocess

from harness import (Session, equal, eventually, fails_with, matches, protocols, retried, run,
                     sqlstate, true)

# One of each that a dump has to say in an order of its own.
SCHEMA = """
CREATE TABLE account (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner text NOT NULL
  DEFAULT 'unowned', balance numeric CHECK (balance >= 0), twice numeric GENERATED ALWAYS AS
  (balance * 2) STORED) USING rdmacc WITH (rdmacc.history = 5, rdmacc.record_size = 96);
CREATE TABLE pair (a int, b text, v jsonb, PRIMARY KEY (a, b)) USING rdmacc;
CREATE TABLE keyless (v text[]) USING rdmacc;
CREATE TABLE event (day date, id int, what text, PRIMARY KEY (day, id)) PARTITION BY RANGE (day);
CREATE TABLE event_old PARTITION OF event FOR VALUES FROM (MINVALUE) TO ('2020-01-01') USING heap;
CREATE TABLE event_new PARTITION OF event FOR VALUES FROM ('2020-01-01') TO (MAXVALUE) USING rdmacc;
CREATE VIEW rich AS SELECT owner FROM account WHERE balance > 500;
CREATE MATERIALIZED VIEW total USING rdmacc AS SELECT sum(balance) FROM account;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN NEW.owner := upper(NEW.owner); RETURN NEW; END $$;
CREATE TRIGGER note BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note();
COMMENT ON TABLE account IS 'accounts';
ALTER TABLE account ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON account USING (owner = current_user);
"""
ROWS = """
INSERT INTO account (owner, balance) SELECT 'owner ' || i, i FROM generate_series(1, 1000) i;
INSERT INTO pair SELECT i, repeat('k', i), jsonb_build_object('i', i) FROM generate_series(1, 50) i;
INSERT INTO keyless VALUES ('{a,b}'), (NULL), ('{}');
INSERT INTO event_old VALUES ('2019-05-01', 1, 'before');
INSERT INTO event VALUES ('2021-05-01', 1, 'after');
REFRESH MATERIALIZED VIEW total;
"""
CONTENTS = """
SELECT count(*), sum(balance), sum(twice), max(owner) FROM account;
SELECT count(*), sum(a), sum(length(b)), sum((v ->> 'i')::int) FROM pair;
SELECT v FROM keyless ORDER BY 1;
SELECT tableoid::regclass, * FROM event ORDER BY 2, 3;
SELECT * FROM total;
SELECT * FROM rdmacc.table_options ORDER BY relation::text;
"""
# Everything that belongs to the extension, as the catalog says it.
MEMBERS = """
SELECT pg_describe_object(classid, objid, objsubid),
       CASE classid WHEN 'pg_proc'::regclass THEN
         (SELECT pg_get_functiondef(p.oid) || coalesce(proacl::text, '') FROM pg_proc p
           WHERE p.oid = objid)
       WHEN 'pg_class'::regclass THEN
         (SELECT pg_get_viewdef(c.oid) || coalesce(relacl::text, '') FROM pg_class c
           WHERE c.oid = objid) END,
       obj_description(objid, classid::regclass::name)
  FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'rdmacc')
   AND classid <> 'pg_type'::regclass ORDER BY 1"""

# Money that moves from one table to another, and what says of each account how much.
BANK = """
CREATE TABLE one (id int PRIMARY KEY, v int) USING rdmacc;
CREATE TABLE two (id int PRIMARY KEY, v int, pad text) USING rdmacc;
CREATE TABLE moved (payer int, payee int, amount int) USING rdmacc;
CREATE INDEX ON two (v);
INSERT INTO one SELECT i, 1000 FROM generate_series(1, 400) AS i;
INSERT INTO two SELECT i, 1000, repeat('p', 200) FROM generate_series(1, 400) AS i;
"""
MOVE = """
\\set a random(1, 400)
\\set b random(1, 400)
\\set x random(1, 9)
BEGIN;
UPDATE one SET v = v - :x WHERE id = :a;
UPDATE two SET v = v + :x WHERE id = :b;
INSERT INTO moved VALUES (:a, :b, :x);
COMMIT;
"""
UNEXPLAINED = """
SELECT (SELECT sum(v) FROM one) + (SELECT sum(v) FROM two),
       (SELECT count(*) FROM one) + (SELECT count(*) FROM two),
       (SELECT count(*) FROM one LEFT JOIN (SELECT payer, sum(amount) FROM moved GROUP BY 1) AS m
          ON id = payer WHERE v <> 1000 - coalesce(sum, 0)),
       (SELECT count(*) FROM two LEFT JOIN (SELECT payee, sum(amount) FROM moved GROUP BY 1) AS m
          ON id = payee WHERE v <> 1000 + coalesce(sum, 0))"""
SHARING = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;"


def dump(box, database, *options):
    text = box.run("pg_dump", *options, database, capture_output=True, text=True).stdout
    # Newer ones draw a key against text that means psql commands.
    return "".join(line for line in text.splitlines(keepends=True)
                   if not line.startswith(("\\restrict", "\\unrestrict")))


def restore(box, text, database):
    box.psql(f"CREATE DATABASE {database} TEMPLATE template0")
    box.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", dbname=database, input=text, text=True,
            capture_output=True)


def a_dump_restores_schema_and_rows(box):
    box.psql("CREATE DATABASE origin")
    box.psql("CREATE EXTENSION rdmacc", dbname="origin")
    box.psql(SCHEMA + ROWS, dbname="origin")
    schema = dump(box, "origin", "--schema-only")
    matches("SECURITY LABEL FOR rdmacc ON TABLE public.account IS 'record_size=96, history=5, ordered_key=1'",
            schema, "options")
    restore(box, dump(box, "origin"), "copy")
    equal(dump(box, "copy", "--schema-only"), schema, "schema of what was restored")
    equal(box.psql(CONTENTS, dbname="copy"), box.psql(CONTENTS, dbname="origin"), "contents")
    equal(box.psql("SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam"
                   " WHERE relname IN ('account', 'event_old', 'event_new', 'total') ORDER BY 1",
                   dbname="copy"),
          "account|rdmacc\nevent_new|rdmacc\nevent_old|heap\ntotal|rdmacc", "access methods")
    # The copy lives on its own.
    box.psql("INSERT INTO account (owner, balance) VALUES ('new', 1)", dbname="copy")
    equal(box.psql("SELECT count(*) FROM account", dbname="origin"), "1000", "rows of the origin")


def a_custom_dump_restores_part_by_part(box):
    box.psql("CREATE DATABASE parts TEMPLATE template0")
    file = box.data + "/parts.dump"
    box.run("pg_dump", "-Fc", "-f", file, "origin")
    for section in ("pre-data", "data", "post-data"):
        box.run("pg_restore", "--exit-on-error", "--section=" + section, "-d", "parts", file)
    equal(box.psql(CONTENTS, dbname="parts"), box.psql(CONTENTS, dbname="origin"), "contents")


def move_money(box):
    script = box.data + "/move.sql"
    with open(script, "w") as file:
        file.write(MOVE)
    return subprocess.Popen(
        box.command("pgbench", "-n", "-f", script, "-c", "3", "-T", "100", "--max-tries=0"),
        env=box.environment("bank"), cwd="/", text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)


def rows_moved(box, database="bank"):
    return int(retried(box, "SELECT count(*) FROM moved", dbname=database).stdout)


def restore_folder(box, folder, database):
    """ADD PRIMARY KEY writes the rows anew in one transaction, which may lose to splits of the index."""
    for _ in range(5):
        box.psql(f"CREATE DATABASE {database} TEMPLATE template0")
        done = box.run("pg_restore", "--exit-on-error", "-j", "2", "-d", database, folder,
                       check=False, capture_output=True, text=True)
        if done.returncode == 0:
            return
        true("could not serialize" in done.stderr, done.stderr[-1000:])
        box.psql(f"DROP DATABASE {database}")
    true(False, "five restores have lost")


def parallel_dumps_are_of_one_moment(box):
    box.psql("CREATE DATABASE bank")
    box.psql("CREATE EXTENSION rdmacc;" + BANK, dbname="bank")
    for number, protocol in enumerate(protocols(box)):
        box.psql(f"ALTER DATABASE bank SET rdmacc.protocol = {protocol}")
        folder = f"{box.data}/bank_{protocol}"
        deferrable = ["--serializable-deferrable"] if number % 2 else []
        before = rows_moved(box)
        load = move_money(box)
        try:
            eventually(lambda: rows_moved(box) > before, "money moves")
            box.run("pg_dump", "-Fd", "-j", "4", "-f", folder, *deferrable, "bank")
            after = rows_moved(box)
            eventually(lambda: rows_moved(box) > after, "money moves again")
        finally:
            load.terminate()
            said = load.communicate(timeout=60)[0]
        true("aborted" not in said, said[-1000:])
        restore_folder(box, folder, "saved")
        equal(box.psql(UNEXPLAINED, dbname="saved"), "800000|800|0|0", f"what {protocol} saved")
        true(before < rows_moved(box, "saved") <= after, f"{protocol}: a moment of the dump's")
        box.psql("DROP DATABASE saved")


def exported(box, begin=SHARING):
    session = Session(box, "bank")
    session.run(begin)
    return session, session.run("SELECT pg_export_snapshot();")


def imported(box, name):
    session = Session(box, "bank")
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ;")
    equal(session.run(f"SET TRANSACTION SNAPSHOT '{name}';"), "", "the import")
    return session


def writers_wait_for_the_exporting_transaction(box):
    leader, name = exported(box)
    fails_with(box, "SET lock_timeout = '100ms'; UPDATE one SET v = v", "55P03", "bank")
    fails_with(box, "SET lock_timeout = '100ms'; SELECT * FROM one FOR UPDATE", "55P03", "bank")
    equal(box.psql("SELECT count(*) FROM one", dbname="bank"), "400", "what others read")
    equal(box.psql("SELECT mode, granted FROM pg_locks WHERE relation = 'pg_am'::regclass"
                   " AND mode <> 'AccessShareLock'"),
          "ShareLock|t", "what views show")
    worker = imported(box, name)
    writer = Session(box, "bank")
    writer.send("INSERT INTO one VALUES (1001, 0);")
    eventually(lambda: box.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1",
               "the writer waits")
    equal(worker.run("SELECT count(*), max(id) FROM one;"), "400|400", "under the snapshot")
    equal(worker.run("SELECT id FROM two WHERE id = 7 OR v = -1;"), "7", "by the whole table")
    equal(leader.run("SELECT count(*) FROM one;"), "400", "in the exporting transaction")
    matches("25006", worker.run("SAVEPOINT s; DELETE FROM one;"), "a write under the snapshot")
    worker.run("ROLLBACK TO s;")
    pid = leader.backend()
    box.psql(f"SELECT pg_terminate_backend({pid})")
    equal(writer.result(), "", "the writer's INSERT")
    matches("55000.*has ended", worker.run("SELECT count(*) FROM one;"), "a leader that has gone")
    equal(box.psql("DELETE FROM one WHERE id = 1001 RETURNING id", dbname="bank"), "1001", "the row")
    for session in (leader, worker, writer):
        session.close()


def an_export_waits_for_writers(box):
    writer = Session(box, "bank")
    writer.run("BEGIN; UPDATE one SET v = v - 5 WHERE id = 1;")
    matches("55P03", exported(box, "SET lock_timeout = '100ms';" + SHARING)[1], "beside a writer")
    leader = Session(box, "bank")
    leader.run(SHARING)
    leader.send("SELECT pg_export_snapshot();")
    equal(writer.run("UPDATE two SET v = v + 5 WHERE id = 1;"
                     "INSERT INTO moved VALUES (1, 1, 5); COMMIT;"), "", "what it had begun")
    worker = imported(box, leader.result())
    equal(worker.run(UNEXPLAINED + ";"), "800000|800|0|0", "after the writer")
    for session in (writer, leader, worker):
        session.close()


def snapshots_that_are_not_shared_are_refused(box):
    for begin in ("BEGIN;", "BEGIN ISOLATION LEVEL REPEATABLE READ;", "BEGIN READ ONLY;"):
        leader, name = exported(box, begin)
        equal(box.psql("UPDATE one SET v = v WHERE id = 1 RETURNING id", dbname="bank"), "1",
              "a writer beside " + begin)
        worker = imported(box, name)
        matches("0A000.*this snapshot", worker.run("SELECT count(*) FROM one;"), begin)
        leader.close()
        worker.close()
    box.psql("CREATE ROLE clerk; GRANT SELECT ON one TO clerk", dbname="bank")
    leader, name = exported(box, "SET ROLE clerk;" + SHARING)
    worker = imported(box, name)
    matches("0A000.*this snapshot", worker.run("SELECT count(*) FROM one;"), "a clerk's")
    worker.close()
    leader.run("COMMIT;")
    equal(sqlstate(box.psql(f"BEGIN ISOLATION LEVEL REPEATABLE READ;"
                            f"SET TRANSACTION SNAPSHOT '{name}'", "bank", check=False)),
          "22023", "a transaction that has ended")
    leader.close()


def plans_by_keys_are_refused_under_a_snapshot(box):
    leader, name = exported(box)
    worker = Session(box, "bank")
    worker.run("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
               "PREPARE by_key(int) AS SELECT v FROM one WHERE id = $1;"
               "PREPARE by_value(int) AS SELECT id FROM two WHERE v = $1;"
               "EXPLAIN EXECUTE by_key(1); EXPLAIN EXECUTE by_value(1);")
    for statement in ("by_key(1)", "by_value(-1)"):
        worker.run(f"BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{name}';")
        matches("0A000.*scans alone", worker.run(f"EXECUTE {statement};"), statement)
        worker.run("ROLLBACK;")
    leader.close()
    worker.close()


def options_take_effect_in_the_nodes(box):
    def taken(options):
        # A session that sets no protocol joins the one in use, which may need history.
        box.psql("SET rdmacc.protocol = occ;"
                 f"CREATE TABLE sized (id int PRIMARY KEY) USING rdmacc WITH ({options});"
                 "INSERT INTO sized SELECT generate_series(1, 20000)")
        size = int(box.psql("SELECT rdmacc.relation_size('sized')"))
        box.psql("DROP TABLE sized")
        return size

    least = taken("rdmacc.history = 0, rdmacc.record_size = 32")
    most = taken("rdmacc.history = 15, rdmacc.record_size = 512")
    true(most > 2.5 * least, f"{most} bytes, and {least} at least")


def an_upgrade_ends_where_a_fresh_install_does(box):
    version = box.psql("SELECT default_version FROM pg_available_extensions WHERE name = 'rdmacc'")
    box.psql("CREATE DATABASE upgraded")
    box.psql("CREATE EXTENSION rdmacc VERSION '1.0'; CREATE TABLE kept (id int PRIMARY KEY)"
             " USING rdmacc; INSERT INTO kept VALUES (1)", dbname="upgraded")
    box.psql("ALTER EXTENSION rdmacc UPDATE", dbname="upgraded")
    equal(box.psql("SELECT extversion FROM pg_extension WHERE extname = 'rdmacc'",
                   dbname="upgraded"), version, "version")
    equal(box.psql("SELECT rdmacc.version()", dbname="upgraded"), version, "of the library")
    equal(box.psql(MEMBERS, dbname="upgraded"), box.psql(MEMBERS), "members")
    equal(box.psql("SELECT * FROM kept", dbname="upgraded"), "1", "rows")


run(a_dump_restores_schema_and_rows, a_custom_dump_restores_part_by_part,
    parallel_dumps_are_of_one_moment, writers_wait_for_the_exporting_transaction,
    an_export_waits_for_writers, snapshots_that_are_not_shared_are_refused,
    plans_by_keys_are_refused_under_a_snapshot,
    options_take_effect_in_the_nodes, an_upgrade_ends_where_a_fresh_install_does,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
