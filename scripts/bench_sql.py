#!/usr/bin/env python3
"""make bench-sql: SQL on rdmacc tables beside the same on heaps, line by line, in turns on one
throw-away server at SERIALIZABLE; ratio, target, and whether it is met.

    scripts/bench_sql.py [--durability=memory|disk] [--clients=8] [--rows=1000000] [--seconds=1]
                         [--rounds=3] [--timeout=60] [--only=REGEX] [--list] [--check] [--write]
                         [--json=FILE]

The heap is unlogged beside --durability=memory, and logged beside disk, with fsync. A ratio is one of
speeds, the median of those of the rounds; spread is the least and the largest. A statement that meets
its time limit counts with it. Verdicts: pass, short (of the target), refused (an error of rdmacc),
differs (the sides printed different rows), skipped. Lines: scripts/sql_bench/."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from sandbox import Failure
from sql_bench import instructions, loads, sides, statements, sysbench, table

PROGRESS_SECONDS = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog=__doc__.split("\n\n")[-1])
    parser.add_argument("--durability", choices=("memory", "disk"), default="memory")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the largest tables")
    parser.add_argument("--seconds", type=float, default=1, help="of a round of load; whole ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=60, help="seconds that a statement may take")
    parser.add_argument("--only", default="", metavar="REGEX", help="lines whose \"group: name\" has it")
    parser.add_argument("--list", action="store_true", help="print the lines and measure nothing")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a setting of the server")
    parser.add_argument("--write", action="store_true",
                        help="note the instructions of backends in docs/ledger_sql.tsv")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--check", action="store_true", help="exit code 1 unless all lines pass")
    parser.add_argument("--build", help="build/release by default")
    return parser.parse_args()


class Progress:
    """A text that is overwritten on a terminal; elsewhere one for each line of the table, and more of
    them when some time has passed."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.last = time.monotonic()
        self.line = None

    def __call__(self, text, line=None):
        if self.terminal:
            print("\r\033[K" + text, end="", file=sys.stderr, flush=True)
        elif line is not self.line or time.monotonic() - self.last > PROGRESS_SECONDS:
            self.last, self.line = time.monotonic(), line
            print(text, file=sys.stderr, flush=True)

    def clear(self):
        if self.terminal:
            self("")


def measure(lines, pair, flags):
    results, group, progress = [], None, Progress()
    for line in lines:
        result = line.measure(pair, flags.rounds, progress)
        progress.clear()
        if line.group != group:
            group = line.group
            table.print_heading(group)
        table.print_row(result, line.at_most)
        results.append(result)
    return results


def run(lines, flags):
    folder = tempfile.mkdtemp(prefix="rdmacc-bench-sql-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    box, pair = sides.new_box(os.path.join(folder, "box"), flags), []
    try:
        box.create()
        pair = sides.start(box, flags)
        return measure(lines, pair, flags)
    finally:
        for side in pair:
            side.close()
        box.remove()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    flags = arguments()
    slow_server = instructions.Server(flags)
    lines = [*loads.lines(flags), *sysbench.lines(flags),
             *(line for file in statements.FILES for line in statements.read(file, flags)),
             *instructions.lines(slow_server)]
    lines = [line for line in lines if re.search(flags.only, f"{line.group}: {line.name}")]
    if flags.list:
        for line in lines:
            print(f"{line.group}: {line.name}")
        return 0
    print(f"SQL on rdmacc beside heap ({'unlogged' if flags.durability == 'memory' else 'logged'}),"
          f" durability {flags.durability}, {flags.clients} clients, {flags.rows:,} rows,"
          f" {flags.rounds} rounds, load {os.getloadavg()[0]:.1f} at the start;"
          " notes: heap / rdmacc", flush=True)
    try:
        results = run(lines, flags)
    finally:
        slow_server.close()
    table.print_summary(results)
    if flags.json:
        table.write_json(flags.json, flags, results)
    return int(flags.check and any(result.verdict not in ("pass", "skipped") for result in results))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"bench-sql: {failure}")
