#!/usr/bin/env python3
"""An idle server hardly runs: how often all its processes, the nodes and the sessions together wake
up is counted, which is the same on every machine, and the clock ticks of processor time that they
use, in which what never sleeps would show. A tick is 1/100 s, so that 1 % of a processor is one tick a
second; a machine that is busy with other things takes several times as many as an idle one."""

import os
import re
import time

from harness import Session, Unmet, equal, node_pids, run

SECONDS = 10
WAKE_UPS_MAX = 120  # a second; some 90 are seen
TICKS_MAX = 4 * SECONDS * os.sysconf("SC_CLK_TCK") // 100
# Clean-up after the last transactions may go on for a moment, and so may another test's load.
WINDOWS_MAX = 4
ROWS = 5000
TRIES_MAX = 50


def stat_fields(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def children_of(parent):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if int(stat_fields(name)[1]) == parent:
                    found.append(int(name))
            except (OSError, IndexError):
                pass  # it has just ended
    return found


def processes(box):
    postmaster = box.postmaster_pid()
    found = {postmaster, *children_of(postmaster), *node_pids(box)}
    for supervisor in children_of(postmaster):
        found |= set(children_of(supervisor))
    return found


def ticks(pid):
    """utime + stime."""
    fields = stat_fields(pid)
    return int(fields[11]) + int(fields[12])


def wake_ups(pid):
    """Of all its threads: how often they have given up a processor by themselves."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as file:
            count += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M).group(1))
    return count


def counts(pids, count):
    """Of each that lives."""
    found = {}
    for pid in pids:
        try:
            found[pid] = count(pid)
        except OSError:
            pass
    return found


def risen(before, after):
    return {f"{pid} {name_of(pid)}": after[pid] - before[pid] for pid in after if after[pid] > before[pid]}


def name_of(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().replace("\0", " ")[:50].strip()


def is_idle(box):
    """In one of a few windows, all processes together stay below both bounds."""
    pids = processes(box)
    for _ in range(WINDOWS_MAX):
        ticks_before, woken_before = counts(pids, ticks), counts(pids, wake_ups)
        time.sleep(SECONDS)
        woken = risen(woken_before, counts(pids, wake_ups))
        spent = risen(ticks_before, counts(pids, ticks))
        said = (f"{sum(woken.values())} wake-ups and {sum(spent.values())} ticks of {len(pids)} processes"
                f" in {SECONDS} s: {woken} {spent}")
        print("  " + said, flush=True)
        if sum(woken.values()) < WAKE_UPS_MAX * SECONDS and sum(spent.values()) < TICKS_MAX:
            return
    raise Unmet(said)


def done(session, sql):
    """What a statement of its own says; one that loses against a split of the index runs again."""
    for _ in range(TRIES_MAX):
        said = session.run(sql)
        if "40001" not in said:
            return said
    raise Unmet(f"{sql!r}: {TRIES_MAX} serialization failures: {said}")


def use_the_engine(session, protocol):
    """Leaves deleted rows, old versions and chains of buckets behind."""
    session.run(f"SET rdmacc.protocol = {protocol};")
    for sql in (f"INSERT INTO used SELECT i, i FROM generate_series(1, {ROWS}) i;",
                "UPDATE used SET v = v + 1;", "DELETE FROM used WHERE id % 2 = 0;"):
        equal(done(session, sql), "", sql)
    equal(done(session, "SELECT count(*) FROM used;"), str(ROWS // 2), "rows")


def a_server_that_was_never_used(box):
    is_idle(box)


def an_idle_session_that_used_the_engine(box):
    box.psql("CREATE TABLE used (id int PRIMARY KEY, v int) USING rdmacc")
    session = Session(box)
    for protocol in ("mvcc", "occ"):
        use_the_engine(session, protocol)
        equal(done(session, "DELETE FROM used;"), "", "DELETE")
    use_the_engine(session, "mvcc")
    is_idle(box)
    session.close()


def a_session_idle_in_a_transaction(box):
    """It holds the epoch: what others delete meanwhile cannot be freed, and is asked for again and
    again."""
    holder, other = Session(box), Session(box)
    holder.run("SET rdmacc.protocol = mvcc; BEGIN;")
    equal(holder.run("SELECT count(*) FROM used;"), str(ROWS // 2), "rows")
    other.run("SET rdmacc.protocol = mvcc;")
    equal(done(other, "DELETE FROM used;"), "", "DELETE")
    equal(done(other, "SELECT count(*) FROM used;"), "0", "rows left")
    is_idle(box)
    equal(holder.run("SELECT count(*) FROM used; COMMIT;"), str(ROWS // 2),
          "rows of the older transaction")
    holder.close()
    other.close()


run(a_server_that_was_never_used, an_idle_session_that_used_the_engine,
    a_session_idle_in_a_transaction,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
