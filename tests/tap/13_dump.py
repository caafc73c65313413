#!/usr/bin/env python3
"""What outlives a table's server: dumps that are restored, and upgrades of the extension."""

from harness import equal, matches, run, true

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
SELECT * FROM rdmacc.table_options;
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
    matches("SECURITY LABEL FOR rdmacc ON TABLE public.account IS 'record_size=96, history=5'",
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


def options_take_effect_in_the_nodes(box):
    def taken(options):
        box.psql(f"CREATE TABLE sized (id int PRIMARY KEY) USING rdmacc WITH ({options});"
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
    options_take_effect_in_the_nodes, an_upgrade_ends_where_a_fresh_install_does,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
