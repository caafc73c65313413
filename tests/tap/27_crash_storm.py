#!/usr/bin/env python3
"""Crashes of everything under load: whatever was acknowledged is there afterwards, at most one
transaction more of each client, and nothing of what a reader was told is lost.

STORM_CYCLES, STORM_SEED and STORM_FSYNC (on) in the environment make it longer, repeat an order of
crashes, and sync to disk."""

import os
import random

import outage
from harness import protocols, run
from load import Load, checkpoint_now_and_then
from storm import SCHEMA

CYCLES = int(os.environ.get("STORM_CYCLES", "4"))
SEED = int(os.environ.get("STORM_SEED", str(random.randrange(1 << 30))))
randomness = random.Random(SEED)


CRASHES = outage.kills(randomness)


def set_up(box):
    print(f"  STORM_SEED={SEED}")
    randomness.shuffle(CRASHES)
    box.psql(SCHEMA)


def a_crash(box):
    crash = CRASHES[(Load.count + 1) % len(CRASHES)]
    offered = [name for name in protocols(box) if name != "calvin"]
    protocol = randomness.choice(outage.protocols_for(crash, offered))
    with Load(box, f"SET rdmacc.protocol = {protocol};") as load:
        load.wait()
        checkpoint_now_and_then(box, randomness)
        crash(box)
        outage.wait_for_rows(box)
        load.wait_for_more()
    load.check(f"{crash.__name__}, {protocol}")


def asynchronous_commits(box):
    """Lose the last ones, without a gap: a prefix of each client's, and of the hot row's."""
    for protocol in ("occ", "nowait"):
        with Load(box, f"SET rdmacc.protocol = {protocol}; SET synchronous_commit = off;") as load:
            load.wait()
            checkpoint_now_and_then(box, randomness)
            outage.kill_everything(box)
        box.start()
        outage.wait_for_rows(box)
        load.check(f"asynchronous commits, {protocol}", all_kept=False)


run(set_up, *[a_crash] * CYCLES, asynchronous_commits,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "rdmacc.checkpoint_timeout": "5s",
              "max_worker_processes": 24, "fsync": os.environ.get("STORM_FSYNC", "off")})
