#!/usr/bin/env python3
"""Parents that are deleted and made again while children come and go, under each protocol: in the
end there is no child without its parent, whatever was refused meanwhile. Once among rdmacc tables,
and once with parents that are rows of heaps, and children that are."""

import os
import re
import subprocess

from harness import ask, equal, protocols, run, true
from verify import verify

PARENTS = 12
CLIENTS = 4
SECONDS = 2
SECONDS_BESIDE_HEAPS = 1
TABLES = f"""
CREATE TABLE parent (id int PRIMARY KEY, life bigserial) USING %(parents)s;
CREATE TABLE child (id bigserial PRIMARY KEY, p int NOT NULL REFERENCES parent) USING %(children)s;
CREATE TABLE leaf (id bigserial PRIMARY KEY, p int NOT NULL REFERENCES parent
  ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) USING %(children)s;
INSERT INTO parent SELECT generate_series(1, {PARENTS});
"""
TRY = """
-- what a constraint refuses is no failure here
CREATE FUNCTION try(statement text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  RETURN true;
EXCEPTION WHEN foreign_key_violation THEN
  RETURN false;
END $$;
"""
SCRIPTS = {
    "child": """SELECT try('INSERT INTO child (p) VALUES (:p)');""",
    "move": """SELECT try('UPDATE child SET p = :p WHERE id = ' || id)
                 FROM child WHERE p = :p % 3 + 1 LIMIT 1;""",
    "leaf": """SELECT try('SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO leaf (p) VALUES (:p)');""",
    "parent": """INSERT INTO parent VALUES (:p) ON CONFLICT DO NOTHING;""",
    "orphans": """SELECT try('DELETE FROM parent WHERE id = :p');""",
    "family": """BEGIN;
                 DELETE FROM child WHERE p = :p;
                 SELECT try('DELETE FROM parent WHERE id = :p');
                 COMMIT;""",
}


def set_up(box):
    box.psql(TRY)
    for name, script in SCRIPTS.items():
        path = os.path.join(box.dir, name + ".pgbench")
        with open(path, "w") as file:
            file.write(f"\\set p random(1, {PARENTS})\n" + script + "\n")
        os.chmod(path, 0o644)


def children_ever(box):
    """That are there, or were deleted."""
    there = sum(int(ask(box, f"SELECT count(*) FROM {table}")) for table in ("child", "leaf"))
    return there + int(ask(box, "SELECT sum(n_tup_del) FROM pg_stat_user_tables"
                                " WHERE relname IN ('child', 'leaf')"))


def storm(box, protocol, seconds):
    before = children_ever(box)
    lives = int(ask(box, "SELECT sum(life) FROM parent"))
    command = box.command("pgbench", "-n", "-c", str(CLIENTS), "-j", "1", "-T", str(seconds),
                          "--max-tries=0", "--random-seed=7")
    for name in SCRIPTS:
        command += ["-f", os.path.join(box.dir, name + ".pgbench")]
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
    done = subprocess.run(command, env=environment, cwd="/", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds + 60)
    equal(done.returncode, 0, f"{protocol}: {done.stdout[-1500:]}")
    count = int(re.search(r"actually processed: (\d+)", done.stdout).group(1))
    children = [int(ask(box, f"SELECT count(*) FROM {table}")) for table in ("child", "leaf")]
    print(f"  {protocol}: {count} transactions, {children} children")
    for table in ("child", "leaf"):
        orphans = ask(box, f"SELECT * FROM {table} WHERE p NOT IN (SELECT id FROM parent)")
        equal(orphans, "", f"{protocol}: orphans in {table}")
    ask(box, f"INSERT INTO parent SELECT generate_series(1, {PARENTS}) ON CONFLICT DO NOTHING")
    true(int(ask(box, "SELECT sum(life) FROM parent")) > lives, f"{protocol}: no parent went")
    true(children_ever(box) > before, f"{protocol}: there was no new child")
    verify(box, protocol)


def storms(box, parents, children, names, seconds):
    box.psql("DROP TABLE IF EXISTS child, leaf, parent;"
             + TABLES % {"parents": parents, "children": children})
    for protocol in names:
        storm(box, protocol, seconds)


def no_orphans_under_any_protocol(box):
    storms(box, "rdmacc", "rdmacc", protocols(box), SECONDS)


def nor_where_parents_are_rows_of_heaps(box):
    # An action on children writes both kinds of tables, which CALVIN refuses.
    names = [name for name in protocols(box) if name != "calvin"]
    storms(box, "heap", "rdmacc", names, SECONDS_BESIDE_HEAPS)


def nor_where_children_are(box):
    names = [name for name in protocols(box) if name != "calvin"]
    storms(box, "rdmacc", "heap", names, SECONDS_BESIDE_HEAPS)


run(set_up, no_orphans_under_any_protocol, nor_where_parents_are_rows_of_heaps,
    nor_where_children_are,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
