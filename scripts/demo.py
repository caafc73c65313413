#!/usr/bin/env python3
"""make demo: a throw-away server with SmallBank in rdmacc tables, run through SQL and natively
under every protocol, stopped and started again in between. Prints one table and leaves nothing
behind."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from sandbox import ROOT, Failure, Sandbox
from smallbank import SmallBank

CUSTOMERS = 100_000
SQL_CLIENTS = 4
SQL_SECONDS = 8
NATIVE_SECONDS = 3
NATIVE_STAGES = ("one_sided", "rpc")
HEADINGS = ("path", "protocol", "stages", "committed/s", "abort %", "p50 ms", "p99 ms",
            "money")
ROW = "{:<8} {:<10} {:<10} {:>12} {:>8} {:>9} {:>9}  {}"
TERMINAL = sys.stderr.isatty()


def say(text):
    print(text, file=sys.stderr, flush=True)


def progress(text, last):
    if TERMINAL:
        print("\r" + text, end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        say(text)


def load(bank):
    begin = time.monotonic()
    bank.create()

    def show(done, total):
        width = 30 * done // total
        progress(f"Loading {total:,} customers [{'#' * width:<30}] {100 * done // total:>3} % "
                 f"{time.monotonic() - begin:.1f} s", done == total)

    bank.load(show)


def run_sql(bank, protocol):
    result = bank.run(SQL_CLIENTS, SQL_SECONDS, protocol)
    kept = bank.money() == bank.expected_money()
    return ("SQL", protocol, "one_sided", f"{result['committed_per_second']:,.0f}",
            f"{result['abort_percent']:.2f}", f"{result['p50_ms']:.3f}",
            f"{result['p99_ms']:.3f}", "ok" if kept else "LOST")


def restart(box, bank):
    """Pulls the plug: every process of the server ends at once, and it is started again."""
    before = bank.money()
    begin = time.monotonic()
    box.stop("immediate")
    box.start()
    after = bank.money()
    seconds = time.monotonic() - begin
    rows = int(box.psql("SELECT loaded_rows + replayed_writes FROM rdmacc.stat_durability"))
    say(f"Stopped at once and started again: {rows:,} rows recovered, {seconds:.1f} s")
    kept = after == before == bank.expected_money()
    return ("SQL", "restart", "", "", "", "", "", "ok" if kept else "LOST")


def run_native(box, protocol, stages):
    command = [os.path.join(box.bin, "rdmacc_bench"), "smallbank", f"--protocol={protocol}",
               f"--stages={stages}", f"--accounts={CUSTOMERS}", "--nodes=2", "--threads=1",
               "--coroutines=8", f"--time={NATIVE_SECONDS}", "--format=json"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    if not done.stdout.strip():
        raise Failure(f"rdmacc_bench failed: {done.stderr[-1000:]}")
    result = json.loads(done.stdout)
    latency_us = result["latency_us"]
    return ("native", protocol, stages, f"{result['committed_per_second']:,.0f}",
            f"{100 * result['abort_rate']:.2f}", f"{latency_us['p50'] / 1000:.3f}",
            f"{latency_us['p99'] / 1000:.3f}",
            "ok" if result["invariant"] == "ok" else "LOST: " + result["invariant"])


def run_all(box):
    bank = SmallBank(box, CUSTOMERS)
    load(bank)
    protocols = box.psql("SELECT unnest(enumvals) FROM pg_settings"
                         " WHERE name = 'rdmacc.protocol'").split("\n")
    rows = []
    for protocol in protocols:
        if protocol == "calvin":  # its transactions cannot be logged before they are executed
            continue
        say(f"Running SmallBank through SQL under {protocol} for {SQL_SECONDS} s")
        rows.append(run_sql(bank, protocol))
    rows.append(restart(box, bank))
    box.stop()
    for protocol in protocols:
        for stages in NATIVE_STAGES:
            say(f"Running SmallBank natively under {protocol}, {stages}, for {NATIVE_SECONDS} s")
            rows.append(run_native(box, protocol, stages))
    return rows


def show(rows):
    print(f"\nSmallBank, {CUSTOMERS:,} customers, 2 nodes on shared memory; "
          f"SQL: {SQL_CLIENTS} clients (pgbench), native: 8 coroutines\n")
    print(ROW.format(*HEADINGS))
    for row in rows:
        print(ROW.format(*row))
    print("\nmoney: the balances add up to what was there plus what transactions put in; "
          "restart:\nafter all processes were stopped at once, and the server started again.")


def main():
    parser = argparse.ArgumentParser(description="SmallBank under every protocol")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    flags = parser.parse_args()
    # An interrupted demo cleans up as a finished one does.
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    box = None
    directory = tempfile.mkdtemp(prefix="rdmacc-demo-")
    try:
        box = Sandbox(directory, settings={"rdmacc.nodes": 2}, build=flags.build)
        box.create()
        box.start()
        box.psql("CREATE EXTENSION rdmacc")
        rows = run_all(box)
    finally:
        if box is not None:
            box.remove()
        shutil.rmtree(directory, ignore_errors=True)
    show(rows)
    return 0 if all(row[-1] == "ok" for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"demo: {failure}")
