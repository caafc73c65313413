#!/usr/bin/env python3
"""Transaction blocks that lose against others are run again by the server (rdmacc.replay_limit): no
client sees a conflict as long as its statements return what they did, and none is done twice."""

import os
import re
import subprocess

from harness import Session, equal, matches, protocols, run, true

CLIENTS = 4
EACH = 40
SET_UP = """
CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING rdmacc;
INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i;
CREATE TABLE log (id bigserial PRIMARY KEY, v int) USING rdmacc;
CREATE TABLE plain (v int);
CREATE FUNCTION add_one(wanted int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO t VALUES (wanted, 0);
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  UPDATE t SET v = v + 1 WHERE id = wanted;
  RETURN wanted;
END $$;
CREATE PROCEDURE add_by_call(wanted int) LANGUAGE plpgsql AS
  $$ BEGIN UPDATE t SET v = v + 1 WHERE id = wanted; END $$;
"""
ADD = "UPDATE t SET v = v + 1 WHERE id = 1;"
# name: (statements, by which messages of PostgreSQL's protocol)
BLOCKS = {
    "update": (f"BEGIN; {ADD} COMMIT;", "simple"),
    "reads": (f"BEGIN;\nSELECT * FROM t WHERE id > 50;\n{ADD}\nSELECT count(*) FROM plain;\nCOMMIT;",
              "simple"),
    "returning": (f"BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT v FROM t WHERE id = 7;\n{ADD}\n"
                  "UPDATE t SET v = v WHERE id = 2 RETURNING id;\nEND;", "extended"),
    "prepared": (r"\set i random(50, 100)" + "\nBEGIN;\nSELECT v FROM t WHERE id = :i;\n"
                 f"{ADD}\nINSERT INTO log (v) VALUES (:i);\nCOMMIT;", "prepared"),
    "savepoints": (f"BEGIN;\nSAVEPOINT a;\nUPDATE t SET v = v + 5 WHERE id = 1;\nROLLBACK TO a;\n"
                   f"SAVEPOINT b;\n{ADD}\nRELEASE b;\nSELECT v FROM t WHERE id = 3;\nCOMMIT;", "simple"),
    "in a savepoint": (f"BEGIN;\nSAVEPOINT a;\n{ADD}\nRELEASE a;\nCOMMIT;", "extended"),
    "functions": ("BEGIN;\nSELECT add_one(1);\nSELECT add_one(2);\nCOMMIT;", "simple"),
    "utility": ("BEGIN;\nSET LOCAL work_mem = '1MB';\nCALL add_by_call(1);\n"
                "DO 'BEGIN UPDATE t SET v = v + 1 WHERE id = 2; END';\nSHOW work_mem;\nCOMMIT;", "simple"),
    "now": (f"BEGIN;\nSELECT now(), statement_timestamp();\n{ADD}\nSELECT now();\nCOMMIT;", "simple"),
}


def set_up(box):
    box.psql(SET_UP)


def hammer(box, protocol, script, mode="simple", settings="", transactions=EACH):
    """Several sessions with the same block; how many of them failed."""
    path = os.path.join(box.dir, "replay.pgbench")
    with open(path, "w") as file:
        file.write(script + "\n")
    os.chmod(path, 0o644)
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol} {settings}"
    done = subprocess.run(
        box.command("pgbench", "-n", "-c", str(CLIENTS), "-j", "1", "-t", str(transactions), "-M", mode,
                    "-f", path),
        env=environment, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=120)
    equal(done.returncode, 0, f"{protocol}, {script}: {done.stdout[-1500:]}")
    return int(re.search(r"number of failed transactions: (\d+)", done.stdout).group(1))


def value(box, key=1):
    return int(box.psql(f"SELECT v FROM t WHERE id = {key}"))


def retries(box, protocol):
    return int(box.psql(f"SELECT retries FROM rdmacc.stat_retries WHERE protocol = '{protocol}'"))


def no_client_sees_a_conflict(box):
    for protocol in protocols(box):
        before = retries(box, protocol)
        for name, (script, mode) in BLOCKS.items():
            box.psql("UPDATE t SET v = 0 WHERE id = 1")
            equal(hammer(box, protocol, script, mode), 0, f"{protocol}, {name}: failed")
            equal(value(box), CLIENTS * EACH, f"{protocol}, {name}: additions")
        print(f"  {protocol}: {retries(box, protocol) - before} attempts lost", flush=True)


run(set_up, no_client_sees_a_conflict,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory", "rdmacc.node_memory": "256MB",
              "autovacuum": "off"})
