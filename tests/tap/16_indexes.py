#!/usr/bin/env python3
"""Secondary and unique indexes under writers, under every protocol, and when a backend is killed:
each row has its entry in each index, each entry its row, and unique values are unique."""

import re
import subprocess
import time

from harness import (ask, equal, eventually, kill_a_client_backend, protocols, run, true,
                     wait_until_up)
from verify import verify

ROWS = 1000
ROOMS = 20
CLIENTS = 4
LOAD_SECONDS = 2
# Values are swapped, and rows moved, deleted and brought back. Nothing of it may fail for good.
SCRIPT = f"""\\set a random(1, {ROWS})
\\set b random(1, {ROWS})
\\set room random(1, {ROOMS})
\\set id random({ROWS + 1}, 2000000000)
UPDATE items SET u = :a + :b - u WHERE u IN (:a, :b);
UPDATE items SET room = :room WHERE u = :a;
BEGIN;
DELETE FROM items WHERE u = :b;
INSERT INTO items VALUES (:id, :b, :room) ON CONFLICT DO NOTHING;
END;
INSERT INTO items VALUES (:id + 1, :a, :room) ON CONFLICT (u) DO UPDATE SET room = excluded.room
  WHERE items.id % 10 > 0;
"""
INDEXES = {"items_pkey": "id > 0", "items_u_key": "u > 0", "items_room": "room > 0",
           "items_room_id": "(room, id) < (1000, 0)"}
# What the plan says, and what keeps the planner from another one.
SCANS = {"Index Scan using": "enable_bitmapscan", "Bitmap Index Scan on": "enable_indexscan"}
SUMS = "count(*), sum(id), sum(u), sum(room), sum(id::int8 * u * room)"


def load_under(box, protocol, seconds):
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
    process = subprocess.Popen(
        box.command("pgbench", "-n", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds),
                    "--max-tries=1000000", "-f", "/dev/stdin"),
        env=environment, cwd="/", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    process.stdin.write(SCRIPT)
    process.stdin.close()
    process.stdin = None
    return process


def check_indexes(box, what):
    by_rows = ask(box, f"SELECT {SUMS} FROM items")
    for index, condition in INDEXES.items():
        # Without its primary key the table would be another one.
        others = ",".join(f"'{name}'" for name in INDEXES if name not in (index, "items_pkey"))
        for scan, other_scan in SCANS.items():
            said = ask(
                box,
                f"SET enable_seqscan = off; SET {other_scan} = off; BEGIN;"
                # The planner takes the one that is left.
                "UPDATE pg_index SET indisvalid = false"
                f" WHERE indexrelid::regclass::text IN ({others});"
                f"EXPLAIN (COSTS OFF) SELECT {SUMS} FROM items WHERE {condition};"
                f"SELECT {SUMS} FROM items WHERE {condition}; ROLLBACK")
            true(re.search(f"{scan} {index}\\b", said), f"{what}: plan: {said}")
            equal(said.split("\n")[-1], by_rows, f"{what}: by {index}")
    equal(ask(box, "SELECT count(u) - count(DISTINCT u) FROM items"), "0", f"{what}: unique")
    equal(ask(box, "SELECT count(*) FROM items x WHERE (SELECT y.id FROM items y WHERE y.u = x.u)"
                   " IS DISTINCT FROM x.id"), "0", f"{what}: each row by its value")


def set_up(box):
    box.psql("CREATE TABLE items (id int PRIMARY KEY, u int UNIQUE, room int) USING rdmacc"
             " WITH (rdmacc.ordered_key = on);"
             "CREATE INDEX items_room ON items (room);"
             "CREATE INDEX items_room_id ON items (room DESC, id);"
             f"INSERT INTO items SELECT g, g, g % {ROOMS} + 1 FROM generate_series(1, {ROWS}) g;"
             "ANALYZE items")
    check_indexes(box, "before")


def entries_are_rows_under_every_protocol(box):
    for protocol in protocols(box):
        load = load_under(box, protocol, LOAD_SECONDS)
        output = load.communicate(timeout=60)[0]
        equal(load.returncode, 0, f"{protocol}: {output[-1000:]}")
        check_indexes(box, protocol)
        verify(box, protocol)


def entries_are_rows_after_a_crash(box):
    for protocol in ("nowait", "occ"):
        load = load_under(box, protocol, LOAD_SECONDS + 2)
        time.sleep(1)
        kill_a_client_backend(box)
        load.communicate(timeout=60)
        eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
        wait_until_up(box)
        check_indexes(box, f"{protocol}, after a crash")
        verify(box, f"{protocol}, after a crash", losses=True)


def indexes_come_back_after_a_stop(box):
    asked = "SELECT count(*), sum(id) FROM items WHERE u > 0"
    before = box.psql(asked)
    for mode in ("fast", "immediate"):
        box.stop(mode)
        box.start()
        wait_until_up(box)
        equal(box.psql(asked), before, f"rows after a stop, {mode}")
        check_indexes(box, "after a stop")


run(set_up, entries_are_rows_under_every_protocol, entries_are_rows_after_a_crash, indexes_come_back_after_a_stop,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
