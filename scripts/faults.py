#!/usr/bin/env python3
"""make faults: what fails x at which step x under which protocol, as tables that say how often each
fault struck. First the simulator (rdmacc_campaign --faults), then real processes: kill -9, processes
that stand still, power cuts and failing disks, each by the tap test that has it.

Exit code 1 if a run failed, or if a fault that can come struck in no run. --share is make check's:
the simulator alone, once for each cell (the taps are parts of their own there)."""

import argparse
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAMPAIGN = os.path.join(ROOT, "build/release/tests/rdmacc_campaign")
TAP_SECONDS_MAX = 1800
COUNTED = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
# What fails, at which step; how a line of the tap's output says that it has; the tap.
TAPS = (
    ("02_life_cycle", {}, (
        ("postmaster killed", "between transactions", r"^ok - postmaster_death"),
        ("supervisor killed", "between transactions", r"^ok - supervisor_can"))),
    ("03_crash", {}, (
        ("session killed, rows in memory", "under load", r"^ok - killed_backends"),
        ("node killed, rows in memory", "under load", r"^ok - killed_nodes"),
        ("node stands still", "under load", r"^ok - stopped_node"),
        ("node stands still", "a cancel", r"^ok - cancels_end"),
        ("node stands still", "a view", r"^ok - views_do_not_wait"))),
    ("10_network", {}, (
        ("packets lost", "under load", r"^ok - lost_packets"),
        ("hosts part for a moment", "under load", r"^ok - link_away_for_a_moment"),
        ("hosts part for long", "under load", r"^ok - link_away_for_long"),
        ("a host's processes killed", "under load", r"^ok - killed_peers"))),
    ("29_commit_points", {}, (
        ("session killed", "before and after the record is logged", r"^ok - rows_"),
        ("session stands still", "installed, not flushed", r"^ok - what_a_reader"),
        ("session stands still", "recorded, not installed", r"^ok - checkpoint_waits"))),
    ("25_durability", {}, (("each process killed, each way to stop", "between", r"^ok - outages"),)),
    ("27_crash_storm", {"STORM_CYCLES": "7"}, (
        ("all killed at once", "under load", r"^  killed_whole"),
        ("immediate stop", "under load", r"^  immediate_stop"),
        ("session killed", "under load", r"^  killed_client"),
        ("node killed", "under load", r"^  killed_a_node"),
        ("checkpointer killed", "under load", r"^  killed_checkpointer"),
        ("supervisor killed", "under load", r"^  killed_supervisor"),
        ("all killed, again and again", "while recovering", r"^  killed_while_recovering"))),
    ("30_power_cuts", {"POWER_CYCLES": "12"}, (
        ("power cut", "under load", r"^  under_load"),
        ("power cut", "beside checkpoints", r"^  beside_checkpoints"),
        ("power cut", "while recovering", r"^  again_while_recovering"),
        ("power cut", "at once after a start", r"^  at_once_after_a_start"),
        ("power cut", "asynchronous commits", r"^  asynchronous commits"),
        ("a write of WAL fails", "under load", r"^  the WAL is not written"),
        ("an fsync of WAL fails", "under load", r"^  the WAL is not synced"),
        ("rows are not written or synced", "checkpoint", r"^  (rows are not|no room for rows)"),
        ("manifest, its name, the folder", "checkpoint", r"^  the (list of files|folder of rows)"),
        ("the slot", "checkpoint", r"^  the slot is not"),
        ("the disk is full", "under load", r"^  a full disk"))),
)
# Of the matrix of faults, and why there is no row for it.
NOT_COVERED = {
    "one node's memory is lost": "rows have no replica in memory; on disk they come back with the"
                                 " start of the server, which the power cuts do",
    "a minority of nodes goes on": "there are no replicas that could serve in a node's place",
}


def simulator(flags):
    command = [CAMPAIGN, "--faults", f"--seeds={flags.seeds}", f"--first={flags.first}",
               f"--jobs={flags.jobs}"]
    print("Simulator\n", flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    print(result.stdout, flush=True)
    counted = COUNTED.findall(result.stdout)
    passed, failed = (int(number) for number in counted[-1]) if counted else (0, 1)
    return passed, max(failed, int(result.returncode != 0))


def run_tap(name, environment):
    """Its output, and whether it passed."""
    try:
        result = subprocess.run([sys.executable, f"tests/tap/{name}.py"], cwd=ROOT, text=True,
                                env={**os.environ, **environment}, timeout=TAP_SECONDS_MAX,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return f"no end within {TAP_SECONDS_MAX} s", False
    return result.stdout, result.returncode == 0


def processes():
    """A row of the table for each fault; a tap that fails is one failure."""
    print("Real processes\n")
    print(f"{'fault':<40} {'step':<38} {'struck':>6}  test", flush=True)
    passed = failed = 0
    said = []
    for name, environment, rows in TAPS:
        begin = time.monotonic()
        output, good = run_tap(name, environment)
        if not good:
            failed += 1
            said.append(f"FAILED: tests/tap/{name}.py\n{output[-6000:]}")
        for fault, step, pattern in rows:
            struck = len(re.findall(pattern, output, re.M))
            if struck == 0:
                failed += 1
                said.append(f"FAILED: never struck: {fault}, {step} ({name})")
            passed += good and struck > 0
            print(f"{fault:<40} {step:<38} {struck:>6}  {name}", flush=True)
        print(f"{'':<79} {time.monotonic() - begin:>6.0f} s", flush=True)
    print()
    for fault, reason in NOT_COVERED.items():
        print(f"not covered: {fault}: {reason}")
    print("\n".join(said))
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="faults at every step")
    parser.add_argument("--share", action="store_true", help="of make check")
    parser.add_argument("--seeds", type=int, default=10, help="of each cell of the simulator")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    if flags.share:
        flags.seeds, flags.first = 2, 5  # by which every cell is struck
    passed, failed = simulator(flags)
    if not flags.share:
        more = processes()
        passed, failed = passed + more[0], failed + more[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
