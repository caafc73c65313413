#!/usr/bin/env python3
"""A server whose verbs are delayed, in backends and nodes: clients fill tables that split meanwhile,
and every row that was acknowledged is there in the end, by its key, by scan and by index; all tables
are sound."""

import os
import random
import threading
import time

from harness import Session, Unmet, equal, run, true, wait_until_up
from verify import verify

CLIENTS = 4
SECONDS = 6
ROWS = 24  # of a statement, at most
TABLES = {
    "plain": "(id bigint, client int, v int)",
    "keyed": "(id bigint PRIMARY KEY, client int, v int)",
    "indexed": "(id bigint PRIMARY KEY, client int, v int)",
}


def restart_with(box, seed):
    """The whole server, nodes included, has the seed in its environment. No table is left from
    before: every row would be loaded through delayed verbs, too, for as long as a minute."""
    drop_tables(box)
    box.stop()
    os.environ["RDMACC_VERB_DELAYS"] = str(seed)
    try:
        box.start()
    finally:
        del os.environ["RDMACC_VERB_DELAYS"]
    wait_until_up(box)


def drop_tables(box):
    box.psql(f"DROP TABLE IF EXISTS {', '.join(TABLES)}")


def create_tables(box):
    for name, columns in TABLES.items():
        box.psql(f"CREATE TABLE {name} {columns} USING rdmacc")
    box.psql("CREATE INDEX indexed_client ON indexed (client, v)")


def fill(box, client, protocol, deadline, acknowledged, failures):
    """Inserts rows with ids of its own; notes those whose statement went well."""
    draw = random.Random(client)
    session = Session(box)
    session.run(f"SET statement_timeout = '30s'; SET rdmacc.protocol = {protocol};")
    next_id = client * 10_000_000
    while time.monotonic() < deadline:
        name = draw.choice(list(TABLES))
        count = draw.randint(1, ROWS)
        values = ", ".join(f"({next_id + i}, {client}, {draw.randrange(1000)})"
                           for i in range(count))
        result = session.run(f"INSERT INTO {name} VALUES {values};")
        if result == "":
            acknowledged[name].update(range(next_id, next_id + count))
        elif "40001" not in result:
            failures.append(result)
            break
        next_id += count
    session.close()


def ids_of(box, name, where="true"):
    printed = box.psql(f"SET enable_indexscan = off; SET enable_bitmapscan = off;"
                       f" SELECT id FROM {name} WHERE {where}")
    return [int(line) for line in printed.split("\n") if line]


def check_table(box, name, ids):
    """What was acknowledged is there once, by a scan; by look-ups, of keys and of an index."""
    seen = ids_of(box, name)
    equal(len(seen), len(set(seen)), f"{name}: rows that are there twice")
    equal(sorted(ids - set(seen)), [], f"{name}: acknowledged rows that a scan does not see")
    # A statement that failed may have been carried out: its rows may be there.
    equal(int(box.psql(f"SELECT count(*) FROM {name}")), len(seen), f"{name}: count")
    if name == "plain":
        return
    wanted = "{" + ",".join(map(str, sorted(ids))) + "}"
    missing = box.psql("SET enable_hashjoin = off; SET enable_mergejoin = off;"
                       " SET enable_seqscan = off;"
                       f" SELECT count(*) FROM unnest('{wanted}'::bigint[]) AS w(id)"
                       f" LEFT JOIN {name} t ON t.id = w.id WHERE t.id IS NULL")
    equal(missing, "0", f"{name}: acknowledged rows that a look-up does not find")
    if name == "indexed":
        by_index = box.psql("SET enable_seqscan = off; SELECT count(*), sum(v) FROM indexed"
                            " WHERE client >= 0")
        by_scan = box.psql("SET enable_indexscan = off; SET enable_bitmapscan = off;"
                           " SELECT count(*), sum(v) FROM indexed")
        equal(by_index, by_scan, "indexed: by the index and by scan")


def storm(box, seed, protocol):
    restart_with(box, seed)
    create_tables(box)
    acknowledged = {name: set() for name in TABLES}
    failures = []
    deadline = time.monotonic() + SECONDS
    threads = [threading.Thread(target=fill,
                                args=(box, client, protocol, deadline, acknowledged, failures))
               for client in range(1, CLIENTS + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        if thread.is_alive():
            raise Unmet("a client has no end")
    equal(failures, [], "failures that are no serialization failures")
    rows = {name: len(ids) for name, ids in acknowledged.items()}
    print(f"  seed {seed}: {rows} rows acknowledged")
    true(all(rows.values()), "every table has got rows")
    for name, ids in acknowledged.items():
        check_table(box, name, ids)
    verify(box, f"seed {seed}")


def rows_survive_pauses_of_any_verb(box):
    storm(box, 17, "occ")


def rows_survive_pauses_between_reads(box):
    storm(box, 40, "nowait")


def rows_survive_pauses_in_long_chains(box):
    storm(box, 72, "sundial")


run(rows_survive_pauses_of_any_verb, rows_survive_pauses_between_reads,
    rows_survive_pauses_in_long_chains,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
