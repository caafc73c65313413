#!/usr/bin/env python3
"""Numbers of sequences in transaction blocks that the server runs again: whatever way they are drawn,
currval() and lastval() tell those of the attempt that commits, or the client gets 40001."""

from hammer import retries
from harness import Session, equal, eventually, matches, run, true

SET_UP = """
CREATE TABLE hot (k int PRIMARY KEY, v int) USING rdmacc;
INSERT INTO hot VALUES (1, 0);
CREATE TABLE source (k int PRIMARY KEY, w text) USING rdmacc;
CREATE SEQUENCE numbers;
CREATE SEQUENCE others;
CREATE FUNCTION next_number() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('numbers') $$;
CREATE FUNCTION number() RETURNS bigint LANGUAGE sql AS $$ SELECT currval('numbers') $$;
CREATE TABLE parents (id bigint PRIMARY KEY DEFAULT next_number(), w text UNIQUE) USING rdmacc;
CREATE TABLE children (parent bigint) USING rdmacc;
CREATE PROCEDURE add(id bigint) LANGUAGE sql AS $$ INSERT INTO parents VALUES (id) $$;
CREATE PROCEDURE add_2(id bigint) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO parents VALUES (id); END $$;
CREATE PROCEDURE add_3() LANGUAGE plpgsql AS $$ BEGIN CALL add_2(nextval('numbers')); END $$;
CREATE FUNCTION add_if_0() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT v FROM hot WHERE k = 1) = 0 THEN PERFORM nextval('others'); END IF;
  INSERT INTO parents VALUES (nextval('numbers'));
END $$;
CREATE FUNCTION other_if_0() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT v FROM hot WHERE k = 1) = 0 THEN PERFORM nextval('others'); END IF;
END $$;
CREATE FUNCTION caught() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT v FROM hot WHERE k = 1) = 0 THEN RETURN nextval('numbers'); END IF;
  RETURN currval('numbers');
EXCEPTION WHEN OTHERS THEN RETURN 0;
END $$;
"""
CHILD = "INSERT INTO children VALUES (currval('numbers'));"
CHANGE = "UPDATE hot SET v = v + 1 WHERE k = 1"
READ = "SELECT v < 100 FROM hot WHERE k = 1;"


def set_up(box):
    box.psql(SET_UP)


def block(box, before, between=CHANGE, after="", prepare="", protocol="occ"):
    """A block that loses at `after`, or COMMIT: what was told before, and from there on; and of the
    session behind it, the number that it tells."""
    box.psql("DELETE FROM parents; DELETE FROM children; UPDATE hot SET v = 0; DELETE FROM source;"
             "INSERT INTO source VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    session = Session(box)
    session.run(f"SET rdmacc.protocol = {protocol}; {prepare}")
    told = session.run(f"BEGIN; {READ} {before} UPDATE hot SET v = v WHERE k = 1;")
    box.psql(f"SET rdmacc.protocol = {protocol}; {between}")
    said = session.run(f"{after} COMMIT;")
    session.run("ROLLBACK;")
    behind = session.run("SELECT currval('numbers');") if not said else ""
    session.close()
    return told, said, behind


def rows(box):
    return [box.psql(f"SELECT string_agg({column}::text, ',' ORDER BY {column}) FROM {table}")
            for column, table in (("id", "parents"), ("parent", "children"))]


def fits(box, label, before, told_by="SELECT currval('numbers');", must=None, **how):
    """The children are the parents, and the number told is theirs; or nothing is committed."""
    for _ in range(2):
        told, said, behind = block(box, before + CHILD + told_by, **how)
        parents, children = rows(box)
        if said:
            matches("40001", said, f"{label}: an error")
            equal((parents, children), ("", ""), f"{label}: rows")
        else:
            last = told.split("\n")[-1]
            equal((children, last, behind), (parents.split(",")[-1],) * 3, f"{label}: numbers")
        true(must is None or must == (said == ""), f"{label}: committed: {said == ''}")


def numbers_of_plans(box):
    fits(box, "VALUES", "INSERT INTO parents VALUES (nextval('numbers'));", must=True)
    fits(box, "lastval()", "INSERT INTO parents VALUES (nextval('numbers'));", "SELECT lastval();", must=True)
    fits(box, "DO", "DO $$ BEGIN INSERT INTO parents VALUES (nextval('numbers')); END $$;", must=True)
    fits(box, "plain, lost by a statement", "INSERT INTO parents VALUES (nextval('numbers'));", must=True,
         after="UPDATE hot SET v = v WHERE k = 1;")


def arguments_of_utility_statements(box):
    prepare = "PREPARE ins(bigint) AS INSERT INTO parents VALUES ($1);"
    for statement in ("EXECUTE ins(nextval('numbers'));", "CALL add(nextval('numbers'));",
                      "CALL add_2(nextval('numbers'));", "CALL add_3();",
                      "DO $$ BEGIN EXECUTE 'INSERT INTO parents VALUES ($1)' USING nextval('numbers'); END $$;"):
        for tells in ("SELECT currval('numbers');", "SELECT lastval();"):
            fits(box, statement, statement, tells, prepare=prepare, must=statement[0] != "E" or None)
    fits(box, "as the child's", "INSERT INTO parents VALUES (nextval('numbers'));"
         "PREPARE child(bigint) AS INSERT INTO children VALUES ($1); EXECUTE child(currval('numbers'));"
         "DELETE FROM children;")


def functions_in_sql(box):
    """Which the planner replaces by their expressions."""
    for label, first in (("a function", "INSERT INTO parents VALUES (next_number());"),
                         ("a default", "INSERT INTO parents (w) VALUES ('w');"),
                         ("several", "INSERT INTO parents (w) VALUES ('w'), ('v');"),
                         ("of a query", "INSERT INTO parents (w) SELECT w FROM source ORDER BY k;"),
                         ("told", "INSERT INTO parents (w) VALUES ('w') RETURNING id;"),
                         ("of a CTE", "WITH n AS (SELECT next_number() AS id) INSERT INTO parents SELECT id FROM n;")):
        fits(box, label, first, must=True)
    fits(box, "what it tells", "INSERT INTO parents (w) VALUES ('w');", "SELECT number();", must=True)
    fits(box, "elsewhere", "INSERT INTO parents SELECT next_number() LIMIT next_number() - next_number() + 1;")


def another_way(box):
    fits(box, "another sequence is not drawn from", "SELECT add_if_0();")
    box.psql("SELECT setval('others', 100)")
    session_told, said, _ = block(box, "SELECT other_if_0();", prepare="SELECT nextval('others'), nextval('numbers');",
                                  after="SELECT currval('others') = 101;")
    if said.endswith("t"):
        matches("^t$", said, "what it had told before the block")
    else:
        matches("40001", said, f"told what only a lost attempt has drawn after {session_told}")
    told, said, _ = block(box, "SELECT caught() > 0;", after="SELECT 1;")
    true("40001" in said or said in ("1", ""), f"after a caught error: {told}, {said}")


def rows_that_are_gone(box):
    for label, first, between in (
            ("fewer rows", "INSERT INTO parents SELECT nextval('numbers'), w FROM source ORDER BY k;",
             "UPDATE source SET w = 'u' WHERE k = 1"),
            ("conflicts", "INSERT INTO parents VALUES (1000000, 'x');"
             "INSERT INTO parents SELECT nextval('numbers'), w FROM source ORDER BY k ON CONFLICT DO NOTHING;"
             "DELETE FROM parents WHERE id = 1000000;", "DELETE FROM source WHERE k = 1"),
            ("a CTE", "WITH i AS (INSERT INTO parents SELECT nextval('numbers'), w FROM source RETURNING 1)"
             " SELECT 1 FROM i LIMIT 1;", "DELETE FROM source WHERE k = 2")):
        for tells in ("SELECT currval('numbers');", "SELECT lastval();"):
            fits(box, label, first, tells, between=f"{CHANGE}; {between}")


def nothing_is_told(box):
    """The statements differ in nothing that the client sees, but the session's number would."""
    cte = ("WITH i AS (INSERT INTO parents SELECT nextval('numbers'), w FROM source RETURNING 1)"
           " SELECT 1 FROM i LIMIT 1;")
    _, said, behind = block(box, cte, between=f"{CHANGE}; DELETE FROM source WHERE k = 2")
    if said:
        matches("40001", said, "its conflict")
    else:
        equal(behind, rows(box)[0].split(",")[-1], "the session's number behind it")
    told, said, _ = block(box, "SAVEPOINT a; " + cte, between=f"{CHANGE}; DELETE FROM source WHERE k = 2",
                          after=f"UPDATE hot SET v = v WHERE k = 1; ROLLBACK TO a; {CHILD}")
    parents, children = rows(box)
    true("40001" in said and children == "" or children != "", f"in a savepoint: {told}, {said}, {parents}, {children}")


def before_the_block(box):
    """What the session told before the block, and the block's own draws behind that."""
    prepare = "SELECT nextval('numbers');"
    _, said, _ = block(box, f"SELECT currval('numbers'), lastval(); {CHILD}"
                       "INSERT INTO parents VALUES (nextval('numbers')); SELECT currval('numbers');", prepare=prepare)
    equal(said, "", "it is committed")
    parents, children = rows(box)
    equal(int(children) + 1, int(parents), "the number before the block, and the next")
    session = Session(box)
    session.run("SET rdmacc.protocol = occ;")
    session.run(f"BEGIN; {READ} SAVEPOINT a; SELECT currval('numbers'); ROLLBACK TO a;"
                "SELECT nextval('numbers') > 0; UPDATE hot SET v = v WHERE k = 1;")
    box.psql("SET rdmacc.protocol = occ; " + CHANGE)
    matches("40001", session.run("COMMIT;"), "a number where none had been told")
    session.close()


def statements_alone(box):
    """They draw anew, and tell what they have drawn, or what was told before."""
    box.psql("CREATE TABLE pairs (before bigint, drawn bigint, behind bigint, last bigint) USING rdmacc")
    pair = ("INSERT INTO pairs SELECT b, n, currval('numbers'), lastval() FROM (SELECT currval('numbers') AS b OFFSET 0) b,"
            " LATERAL (SELECT b * 0 + nextval('numbers') AS n OFFSET 0) n")
    settings = "SET rdmacc.protocol = nowait; SET rdmacc.auto_retry = 10000; SET plan_cache_mode = force_generic_plan;"
    change = "UPDATE hot SET v = v WHERE k = 1"
    box.psql(f"CREATE FUNCTION pair() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {pair}; {change}; END $$")
    for statement in ("SELECT pair();", f"DO $$ BEGIN {pair}; {change}; END $$;", "EXECUTE one_more;"):
        holder, session = Session(box), Session(box)
        session.run(f"{settings} PREPARE one_more AS SELECT pair();")
        told = session.run("SELECT nextval('numbers');")
        holder.run(f"SET rdmacc.protocol = nowait; BEGIN; {change};")
        before = retries(box, "nowait")
        session.send(statement)
        eventually(lambda lost=before: retries(box, "nowait") > lost + 2, "several attempts")
        holder.run("COMMIT;")
        equal(session.result(), "", statement)
        number, drawn, behind, last = box.psql("SELECT * FROM pairs ORDER BY drawn DESC LIMIT 1").split("|")
        equal(number, told, f"{statement}: the number before")
        equal((behind, last), (drawn, drawn), f"{statement}: the number drawn")
        holder.close()
        session.close()


def discarded(box):
    _, said, _ = block(box, "SELECT nextval('numbers') > 0; DISCARD SEQUENCES; SELECT nextval('numbers') > 0;")
    matches("40001", said, "its conflict")


def copied(box):
    """COPY draws other numbers when it comes again."""
    box.psql("CREATE TABLE filled (id bigint PRIMARY KEY DEFAULT nextval('numbers'), w int) USING rdmacc")
    session = Session(box)
    session.run("SET rdmacc.protocol = occ;")
    copy = "COPY filled (w) FROM STDIN;\n1\n2\n\\.\n"
    session.run(f"BEGIN; {READ}\n{copy}UPDATE hot SET v = v WHERE k = 1;")
    box.psql("SET rdmacc.protocol = occ; " + CHANGE)
    equal(session.run("COMMIT;"), "", "COPY comes again")
    session.run(f"BEGIN; {READ}\n{copy}")
    box.psql("SET rdmacc.protocol = occ; " + CHANGE)
    said = session.run(f"UPDATE hot SET v = v WHERE k = 1; {CHILD} COMMIT;")
    true("40001" in said or rows(box)[1] == box.psql("SELECT max(id) FROM filled"), f"COPY's number: {said}")
    session.close()


def rights_are_those_of_the_functions(box):
    """Plans have the extension's functions in their place, which need the same rights and no others."""
    box.psql("CREATE ROLE plain; CREATE TABLE with_identity (id int GENERATED ALWAYS AS IDENTITY, n serial) USING heap;"
             "GRANT ALL ON with_identity TO plain; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain")
    calls = {"nextval(regclass)": "nextval('numbers')", "random()": "random()", "lastval()": "lastval()",
             "currval(regclass)": "currval('numbers')", "gen_random_uuid()": "gen_random_uuid()",
             "clock_timestamp()": "clock_timestamp()"}
    for function, call in calls.items():
        session = Session(box)
        session.run("SET ROLE plain;")
        true("ERROR" not in session.run("SELECT nextval('numbers');"), "to begin with")
        session.run(f"PREPARE p AS SELECT {call} IS NOT NULL;")
        equal(session.run("EXECUTE p;"), "t", call)
        box.psql(f"REVOKE EXECUTE ON FUNCTION {function} FROM public")
        for sql in (f"SELECT {call};", "EXECUTE p;", f"BEGIN; SELECT {call}; ROLLBACK;"):
            matches("42501: permission denied for function " + function.partition("(")[0],
                    session.run(sql + " ROLLBACK;"), sql)
        box.psql(f"GRANT EXECUTE ON FUNCTION {function} TO public")
        equal(session.run("EXECUTE p;"), "t", call + " again")
        session.close()
    session = Session(box)
    session.run("SET ROLE plain; PREPARE p AS SELECT next_number() > 0;")
    equal(session.run("EXECUTE p;"), "t", "a function in SQL")
    box.psql("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA rdmacc FROM public")
    equal(session.run("EXECUTE p;"), "t", "a function in SQL, and its plan")
    equal(session.run("INSERT INTO with_identity DEFAULT VALUES RETURNING id, n;"), "1|1", "an identity column")
    equal(session.run("BEGIN; SELECT random() < 1; ROLLBACK;"), "t", "a random number")
    session.close()


run(set_up, numbers_of_plans, arguments_of_utility_statements, functions_in_sql, another_way,
    rows_that_are_gone, nothing_is_told, before_the_block, statements_alone, discarded, copied,
    rights_are_those_of_the_functions,
    settings={"rdmacc.nodes": 1, "rdmacc.durability": "memory"})
