#!/usr/bin/env python3
"""make kills: sessions, nodes, background processes and whole servers are killed at random under
load, with rows on disk, until --kills of them are done. Clients keep a journal of what was
acknowledged to them; a table says how many transactions that were, and of how many

  lost      the server does not know any more,
  invented  rows are there although no client has sent them, or a client was told that they are not,
  locks     are left when no client works,
  unsound   loads left tables that contradict each other, or that rdmacc.verify() finds wrong.

Exit code 1 if any of these is not 0, or if the server did not come back; --seed repeats an order of
kills. Every round kills --each times in one way, under one protocol, and then judges."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/tap"))
import outage  # noqa: E402
from harness import Unmet, eventually, protocols  # noqa: E402
from load import Load, checkpoint_now_and_then  # noqa: E402
from sandbox import Sandbox  # noqa: E402
from storm import NEW_SCHEMA, SCHEMA, check_tables, judge_journal  # noqa: E402
from verify import verify  # noqa: E402

SETTINGS = {"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.checkpoint_timeout": "5s",
            "max_worker_processes": 24}
LOG_KEPT = 20_000  # characters of the server's log that a failure prints
WRONG = ("lost", "invented", "locks", "unsound")
COLUMNS = ("kills", "acknowledged", "unknown", *WRONG)


class Tally(dict):
    def __init__(self, **counts):
        super().__init__(dict.fromkeys(COLUMNS, 0), **counts)

    def add(self, other):
        for name in COLUMNS:
            self[name] += other[name]

    def wrong(self):
        return any(self[name] for name in WRONG)

    def __str__(self):
        return ", ".join(f"{self[name]} {name}" for name in COLUMNS[1:])


def locks_left(box):
    """Sessions whose clients have gone may still be at their last statement."""
    count = "SELECT count(*) FROM rdmacc.locks"
    try:
        eventually(lambda: box.psql(count) == "0", "no locks")
    except Unmet:
        return int(box.psql(count))
    return 0


def is_sound(box, what):
    try:
        check_tables(box)
        verify(box, what, losses=True)
    except Unmet as unmet:
        print(f"  UNSOUND: {unmet}", flush=True)
        return False
    return True


def judge(box, load, what, kills):
    lost, invented = judge_journal(box, load.clients, all_kept=True)
    for name, found in (("lost", lost), ("invented", invented)):
        if found:
            print(f"  {name.upper()}, as (client, number): {found}", flush=True)
    return Tally(kills=kills, acknowledged=sum(len(c.committed) for c in load.clients),
                 unknown=sum(len(c.unknown) for c in load.clients), lost=len(lost),
                 invented=len(invented), locks=locks_left(box),
                 unsound=0 if is_sound(box, what) else 1)


def round_of(box, kill, protocol, count, randomness):
    with Load(box, f"SET rdmacc.protocol = {protocol};") as load:
        load.wait()
        for _ in range(count):
            checkpoint_now_and_then(box, randomness)
            kill(box)
            outage.wait_for_rows(box)
            load.wait_for_more()
    return judge(box, load, f"{kill.__name__}, {protocol}", count)


def run(box, flags, tallies):
    """False: something was wrong."""
    randomness = random.Random(flags.seed)
    offered = [name for name in protocols(box) if name in (flags.protocols or protocols(box))]
    kills = [kill for kill in outage.kills(randomness)
             if kill.__name__ in flags.kinds and outage.protocols_for(kill, offered)]
    if not kills:
        print(f"no kind of {flags.kinds} is one of {flags.protocols}", flush=True)
        return False
    begin, done, good = time.monotonic(), 0, True
    while done < flags.kills and time.monotonic() - begin < flags.seconds:
        kill = randomness.choice(kills)
        protocol = randomness.choice(outage.protocols_for(kill, offered))
        found = round_of(box, kill, protocol, min(flags.each, flags.kills - done), randomness)
        done += found["kills"]
        tallies.setdefault(kill.__name__, Tally()).add(found)
        print(f"{done}/{flags.kills} ({time.monotonic() - begin:.0f} s): {kill.__name__}, {protocol}:"
              f" {found}", flush=True)
        if found.wrong():
            good = False
            print(f"Server log:\n{box.log_text()[-LOG_KEPT:]}", flush=True)
            box.psql(NEW_SCHEMA)
    return good


def print_table(tallies):
    total = Tally()
    for tally in tallies.values():
        total.add(tally)
    width = max(len(name) for name in ("killed_while_recovering", *tallies))
    print(f"{'kind of kill':{width}} " + " ".join(f"{name:>12}" for name in COLUMNS))
    for name, tally in (*sorted(tallies.items()), ("all", total)):
        print(f"{name:{width}} " + " ".join(f"{tally[column]:12}" for column in COLUMNS))


def parse():
    names = [kill.__name__ for kill in outage.kills(random)]
    parser = argparse.ArgumentParser(description="kill processes of a server under load")
    parser.add_argument("--kills", type=int, default=500, help="how many")
    parser.add_argument("--each", type=int, default=5, help="so many in a round, before its judgement")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="begin no round after so long")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--kinds", nargs="+", choices=names, default=names)
    parser.add_argument("--protocols", nargs="+", help="default: all")
    parser.add_argument("--fsync", choices=("on", "off"), default="off",
                        help="what only a power cut loses is on disk anyway")
    parser.add_argument("--build", default=os.environ.get("RDMACC_BUILD"))
    return parser.parse_args()


def main():
    flags = parse()
    print(f"seed {flags.seed}", flush=True)
    directory = tempfile.mkdtemp(prefix="rdmacc-kills-")
    box = Sandbox(directory, settings={**SETTINGS, "fsync": flags.fsync}, build=flags.build)
    tallies, good = {}, False
    try:
        box.create()
        box.start()
        box.psql("CREATE EXTENSION rdmacc;" + SCHEMA)
        good = run(box, flags, tallies)
    except Exception as error:  # the server did not come back, or a client hangs
        print(f"FAILED: {error!r}\nServer log:\n{box.log_text()[-LOG_KEPT:]}", flush=True)
    finally:
        box.remove()
        shutil.rmtree(directory, ignore_errors=True)
        print_table(tallies)
    print(f"{1 if good else 0} passed, {0 if good else 1} failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
