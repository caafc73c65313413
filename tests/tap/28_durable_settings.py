#!/usr/bin/env python3
"""What durable rows need, and what they do without: settings that are refused when the server
starts, and files of checkpoints that are damaged or gone, over which no session gets in."""

import os

import outage
from harness import Session, equal, eventually, fails_with, matches, run, sqlstate, true
from sandbox import Failure

ROWS = 2000
COUNT = "SELECT count(*) || ' ' || sum(v) FROM t"
EXPECTED = f"{ROWS} {ROWS * (ROWS + 1) // 2}"


def set_up(box):
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc;"
             f"INSERT INTO t SELECT i, i FROM generate_series(1, {ROWS}) AS i")
    equal(box.psql(COUNT), EXPECTED, "rows")


def start_is_refused(box, settings, pattern):
    before = dict(box.settings)
    box.stop()
    box.settings.update(settings)
    try:
        seen = len(box.log_text())
        try:
            box.start()
            true(False, f"the server starts with {settings}")
        except Failure:
            matches(pattern, box.log_text()[seen:], f"the log after a start with {settings}")
    finally:
        box.settings.clear()
        box.settings.update(before)
        box.start()
    outage.wait_for_rows(box)
    equal(box.psql(COUNT), EXPECTED, "rows afterwards")


def wal_that_is_not_kept(box):
    start_is_refused(box, {"max_slot_wal_keep_size": "100MB"},
                     r"FATAL:  rdmacc.durability = disk needs[^\n]*\n"
                     r"[^\n]*HINT:  Set max_slot_wal_keep_size = -1")
    # PostgreSQL itself refuses minimal WAL where there are slots.
    start_is_refused(box, {"wal_level": "minimal", "max_wal_senders": "0"}, r"FATAL:.*wal_level")
    start_is_refused(box, {"max_replication_slots": "0"},
                     r"FATAL:  rdmacc.durability = disk needs[^\n]*\n"
                     r"[^\n]*HINT:  Set max_replication_slots|FATAL:.*replication slot")


def memory_over_rows_on_disk(box):
    start_is_refused(box, {"rdmacc.durability": "memory"}, r"FATAL:.*\n.*HINT:  ")


def calvin_does_not_write(box):
    for statement in ("UPDATE t SET v = 0 WHERE id = 1", "INSERT INTO t VALUES (-1, 0)",
                      "DELETE FROM t WHERE id = 1"):
        fails_with(box, f"SET rdmacc.protocol = calvin; {statement}", "0A000")
    equal(box.psql(COUNT), EXPECTED, "rows")


def checkpoint_files(box, ending):
    folder = os.path.join(box.data, "pg_rdmacc")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if name.endswith(ending))


def no_session_gets_in(box):
    """They wait for rows, for some seconds, and get an error."""
    statements = (COUNT, "UPDATE t SET v = 0 WHERE id = 1",
                  "CREATE TABLE u (id int PRIMARY KEY) USING rdmacc")
    sessions = [Session(box) for _ in statements]
    for session, sql in zip(sessions, statements):
        session.send(sql + ";")
    for session, sql in zip(sessions, statements):
        matches("^ERROR:  57P03: ", session.result(), sql)
        session.close()


def with_file(box, change, path, said, check=lambda box: None):
    """The server stops, the file changes, the log says it, no row is shown; with the file as it
    was, all is well."""
    box.stop()
    with open(path, "rb") as file:
        whole = file.read()
    owner = os.stat(path)
    change(path, whole)
    seen = len(box.log_text())
    try:
        box.start()
        eventually(lambda: said in box.log_text()[seen:], f"the log has {said}")
        result = box.psql("SET statement_timeout = '300ms'; " + COUNT, check=False)
        true(sqlstate(result) in ("57014", "57P03"), f"no row is shown: {result}")
        equal(box.psql("SELECT 1"), "1", "what needs no rows")
        check(box)
    finally:
        box.stop("immediate")
        with open(path, "wb") as file:
            file.write(whole)
        os.chown(path, owner.st_uid, owner.st_gid)
    box.start()
    outage.wait_for_rows(box)
    equal(box.psql(COUNT), EXPECTED, "rows of the file as it was")


def damaged_rows(box):
    path = max(checkpoint_files(box, ".rows"), key=os.path.getsize)
    with_file(box, flip_in_the_middle, path, os.path.basename(path), no_session_gets_in)
    path = max(checkpoint_files(box, ".rows"), key=os.path.getsize)
    with_file(box, cut_the_end, path, os.path.basename(path))


def rows_of_another_version(box):
    path = max(checkpoint_files(box, ".rows"), key=os.path.getsize)
    with_file(box, make_version_one, path,
              f'{os.path.basename(path)}" was written by another version of rdmacc', no_session_gets_in)


def make_version_one(path, whole):
    equal(whole[:8], b"rmdrows3", "the head of the file")
    overwrite(path, b"rmdrows1" + whole[8:])


def overwrite(path, content):
    with open(path, "r+b") as file:
        file.truncate()
        file.write(content)


def flip_in_the_middle(path, whole):
    middle = len(whole) // 2
    overwrite(path, whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:])


def remove(path, _):
    os.unlink(path)


def cut_the_end(path, whole):
    overwrite(path, whole[:-16])


def lost_manifest(box):
    for change in (remove, flip_in_the_middle):
        manifests = checkpoint_files(box, ".manifest")
        equal(len(manifests), 1, "one checkpoint is kept")
        with_file(box, change, manifests[0], "no whole checkpoint" if change is remove
                  else os.path.basename(manifests[0]))


def tables_that_rest_keep_their_files(box):
    """Over a restart, too; one that the WAL has changed since is written anew."""
    box.psql("CREATE TABLE small (id int PRIMARY KEY) USING rdmacc; INSERT INTO small VALUES (1)")
    box.psql("SELECT rdmacc.checkpoint()")
    before = checkpoint_files(box, ".rows")
    box.psql("INSERT INTO small VALUES (2)")
    box.stop("immediate")
    box.start()
    outage.wait_for_rows(box)
    box.psql("SELECT rdmacc.checkpoint()")
    after = checkpoint_files(box, ".rows")
    equal((len(before), len(after)), (4, 4), "tables and the order of their keys")
    equal(len(set(before) & set(after)), 2, f"files that stay: {before} and {after}")
    equal(box.psql(COUNT + "; SELECT count(*) FROM small"), EXPECTED + "\n2", "rows")
    box.psql("DROP TABLE small")


def path_in_folder(box, name):
    return os.path.join(box.dir, "data", "pg_rdmacc", name)


def what_a_checkpoint_has_left(box):
    """One that was killed, or found no room: its files go with the next one."""
    left = ["000000FF.FFFFFFFFFFFF0000.rows", "FFFFFFFFFFFF0000.new"]
    for name in left:
        with open(path_in_folder(box, name), "wb") as file:
            file.write(b"some of it")
        os.chmod(path_in_folder(box, name), 0o666)
    box.psql("INSERT INTO t VALUES (-1, 0)")
    box.psql("SELECT rdmacc.checkpoint()")
    equal([name for name in left if os.path.exists(path_in_folder(box, name))], [], "files that are left")
    box.psql("DELETE FROM t WHERE id = -1")


def a_manifest_that_cannot_be_read(box):
    """The log says so, and nothing of a checkpoint that is not there."""
    box.stop()
    path = path_in_folder(box, os.path.basename(checkpoint_files(box, ".manifest")[0]))
    before = os.stat(path)
    os.chown(path, 0, 0)
    os.chmod(path, 0o600)
    seen = len(box.log_text())
    box.start()
    try:
        eventually(lambda: "Permission denied" in box.log_text()[seen:], "why", 30)
        true("no whole checkpoint" not in box.log_text()[seen:], "another reason")
    finally:
        os.chown(path, before.st_uid, before.st_gid)
    box.stop("immediate")
    box.start()
    outage.wait_for_rows(box)
    equal(box.psql(COUNT), EXPECTED, "rows afterwards")


def slot_is_held(box):
    fails_with(box, "SELECT pg_drop_replication_slot('rdmacc')", "55006")


run(set_up, tables_that_rest_keep_their_files, what_a_checkpoint_has_left, slot_is_held,
    a_manifest_that_cannot_be_read, wal_that_is_not_kept, memory_over_rows_on_disk, calvin_does_not_write,
    damaged_rows, rows_of_another_version, lost_manifest,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
