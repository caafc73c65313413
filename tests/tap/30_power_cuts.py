#!/usr/bin/env python3
"""Power cuts and disks that fail, on a file layer that forgets what was not synced (tests/power):
every acknowledged transaction is there afterwards, row by row, and no other one.

POWER_CYCLES in the environment (4) says how many cuts and how many failures; POWER_SEED repeats
their order."""

import errno
import os
import re
import subprocess
import time

import outage
import power
from harness import Session, Unmet, equal, eventually, protocols, run, true
from load import Load, checkpoint_now_and_then
from sandbox import Failure
from storm import SCHEMA, check_journal

CYCLES = int(os.environ.get("POWER_CYCLES", "4"))
READY_S = 30


order = []  # of failures


def set_up(box):
    box.psql(SCHEMA)
    order.extend(FAULTS)
    box.power.randomness.shuffle(order)


def drawn(box):
    names = [name for name in protocols(box) if name != "calvin"]
    return box.power.randomness.choice(names)


def under_load(box):
    checkpoint_now_and_then(box, box.power.randomness)
    outage.killed_whole(box)


def beside_checkpoints(box):
    """Of PostgreSQL and of rows, which have begun and may have ended."""
    sessions = [Session(box) for _ in range(2)]
    for session, statement in zip(sessions, ("CHECKPOINT;", "SELECT rdmacc.checkpoint();")):
        session.send(statement)
    time.sleep(box.power.randomness.uniform(0, 0.15))
    outage.killed_whole(box)
    for session in sessions:
        session.close()


def again_while_recovering(box):
    """At moments between the start and the first session."""
    outage.kill_everything(box)
    for said in ("automatic recovery in progress", "redo (starts|is not)", "is ready"):
        seen = len(re.findall(said, box.log_text()))
        box.run("pg_ctl", "-D", box.data, "-l", box.log, "-W", "-o", f"-p {box.port}", "start",
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda text=said, before=seen: len(re.findall(text, box.log_text())) > before,
                   f"the log has {said!r}", READY_S)
        time.sleep(box.power.randomness.uniform(0, 0.1))
        outage.kill_everything(box)
    box.start()


def at_once_after_a_start(box):
    outage.killed_whole(box)
    outage.wait_for_rows(box)
    outage.killed_whole(box)


CUTS = (under_load, beside_checkpoints, again_while_recovering, at_once_after_a_start)


def a_cut(box):
    cut = CUTS[Load.count % len(CUTS)]
    protocol = drawn(box)
    with Load(box, f"SET rdmacc.protocol = {protocol};") as load:
        load.wait()
        cut(box)
        outage.wait_for_rows(box)
        load.wait_for_more()
    load.check(f"{cut.__name__}, {protocol}")


def asynchronous_commits(box):
    """Lose the last ones, without a gap: a prefix of each client's, and of the hot row's."""
    protocol = drawn(box)
    with Load(box, f"SET rdmacc.protocol = {protocol}; SET synchronous_commit = off;") as load:
        load.wait()
        outage.kill_everything(box)
    box.start()
    outage.wait_for_rows(box)
    load.check(f"asynchronous commits, {protocol}", all_kept=False)


# ---- Disks that fail

# What is said when, of which files. A server may end over it, and begin anew by itself.
WAL = "pg_wal/0*"
FAULTS = {
    "the WAL is not synced": (errno.EIO, power.FSYNC, WAL, 1),
    "the WAL is not written": (errno.EIO, power.WRITE, WAL, 1),
    "rows are not synced": (errno.EIO, power.FSYNC, "pg_rdmacc/*.rows", 1),
    "rows are not written": (errno.EIO, power.WRITE, "pg_rdmacc/*.rows", 2),
    "no room for rows": (errno.ENOSPC, power.EXTEND | power.CREATE, "pg_rdmacc/*", 3),
    "the list of files is not synced": (errno.EIO, power.FSYNC, "pg_rdmacc/*.new", 1),
    "the list of files is not written": (errno.ENOSPC, power.WRITE, "pg_rdmacc/*.new", 1),
    "the list of files gets no name": (errno.EIO, power.CREATE, "pg_rdmacc/*.manifest", 1),
    "the folder of rows is not synced": (errno.EIO, power.FSYNC, "pg_rdmacc", 1),
    "the slot is not synced": (errno.EIO, power.FSYNC, "pg_replslot/rdmacc/*", 1),
    "the slot is not written": (errno.ENOSPC, power.WRITE, "pg_replslot/rdmacc/*", 1),
}


def until_it_has_struck(box):
    """Checkpoints write most of these files. The server may be away."""
    def struck():
        box.psql("SET statement_timeout = '3s'; CHECKPOINT", check=False)
        return box.power.struck() > 0
    eventually(struck, "the disk fails", READY_S)


def up_again(box):
    """One that could not even recover is started by hand."""
    deadline = time.monotonic() + READY_S
    while box.psql("SELECT 1", check=False).stdout != "1\n" and time.monotonic() < deadline:
        if not box.running():
            box.start()
        time.sleep(0.1)
    outage.wait_for_rows(box)


def check_ending(box, name, panics_before):
    """Over WAL that fails all processes end; over a checkpoint of rows none of the sessions does."""
    panics = box.log_text().count("PANIC:  ") - panics_before
    if FAULTS[name][2] == WAL:
        true(panics > 0, f"{name}: the server goes on")
    if FAULTS[name][2].startswith("pg_rdmacc/"):
        equal(panics, 0, f"{name}: PANICs")
        true(int(box.psql("SELECT failures FROM rdmacc.stat_durability")) > 0,
             f"{name}: failures that are counted")


def a_failure(box):
    """Half of them with a power cut at once: what was acknowledged has been synced."""
    name = order[Load.count % len(order)]
    error, operations, pattern, times = FAULTS[name]
    protocol = drawn(box)
    cut = box.power.randomness.random() < 0.5
    panics = box.log_text().count("PANIC:  ")
    with Load(box, f"SET rdmacc.protocol = {protocol};") as load:
        load.wait()
        box.power.fail(error, operations, pattern, skip=box.power.randomness.randint(0, 1),
                       times=times)
        until_it_has_struck(box)
        if cut:
            outage.kill_everything(box)
            box.start()
        times = box.power.heal()
        up_again(box)
        load.wait_for_more()
    if not cut:
        check_ending(box, name, panics)
    load.check(f"{name} ({times} times), {protocol}{', cut' if cut else ''}")


def full_disk(box):
    """For a while no file can grow, and none be made; then there is room again."""
    protocol = drawn(box)
    with Load(box, f"SET rdmacc.protocol = {protocol};") as load:
        load.wait()
        box.power.fail(errno.ENOSPC, power.EXTEND | power.CREATE, "*")
        until_it_has_struck(box)
        refused = box.psql("CREATE TABLE full_disk (id int PRIMARY KEY) USING rdmacc", check=False)
        true(refused.returncode != 0 and refused.stderr != "", f"without room: {refused}")
        time.sleep(1)
        box.power.heal()
        up_again(box)
        load.wait_for_more()
        outage.kill_everything(box)
    box.start()
    outage.wait_for_rows(box)
    load.check(f"a full disk, {protocol}")


def without_fsync_rows_are_lost(box):
    """The negative control: if nothing is synced, a cut takes all back to the last start, or what
    is left is no server."""
    box.stop()
    box.settings["fsync"] = "off"
    box.power.begin()
    box.power.kind = power.WHOLE
    box.start()
    outage.wait_for_rows(box)
    with Load(box, "") as load:
        load.wait()
        box.psql("CHECKPOINT")
        outage.kill_everything(box)
    try:
        box.start()
        outage.wait_for_rows(box)
        load.report("without fsync")
        check_journal(box, load.clients, all_kept=True)
    except (Failure, Unmet) as lost:
        true("acknowledged and lost" in str(lost) or not box.running(), f"without fsync: {lost}")
    else:
        true(False, "nothing is lost without fsync: the layer forgets nothing")


run(set_up, *[a_cut] * CYCLES, asynchronous_commits, *[a_failure] * CYCLES, full_disk,
    without_fsync_rows_are_lost, power_cuts=True,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.checkpoint_timeout": "5s",
              "max_wal_size": "64MB", "min_wal_size": "32MB", "log_checkpoints": "on"})
