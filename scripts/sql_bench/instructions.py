"""Instructions of a backend for a transaction of prepared statements, counted by valgrind: the server's
processes run under cachegrind, and a session with many transactions is compared with one that has few,
so that the session's begin and end do not count. What rdmacc's took when docs/ledger_sql.tsv was written
(--write) stands beside what differs from it by more than 3 %: times on a shared machine hide as much."""

import argparse
import glob
import os
import re
import shutil
import subprocess
import tempfile
import time

from sandbox import Failure

from sql_bench import sides as both_sides
from sql_bench.lines import Line, Sample, Skipped
from sql_bench.loads import (FIVE, INSERT, KEYED, ONE_KEY, SELECT, SHORT, TWO_KEYS, UPDATE,
                             rows_of)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOOK = os.path.join(ROOT, "docs", "ledger_sql.tsv")
BOOK_HEAD = "transaction\tthousand instructions\n"
MARK_PERCENT = 3
ROWS = 100_000  # instead of --rows: they are loaded under valgrind, too
FEW, MANY = 200, 1200
BASE = 1_000_000_000  # of keys that INSERT counts upwards from, others in each run
RUN_SECONDS_MAX = 150
EXIT_SECONDS_MAX = 20
SESSIONS = 2  # pgbench's: one asks first, the other runs the script
SUMMARY = re.compile(r"^summary: (\d+)", re.M)
# Of INSERT: what heaps take.
LINES = (("SELECT by primary key", 45, ONE_KEY + SELECT), ("UPDATE by primary key", 60, ONE_KEY + UPDATE),
         ("5 statements, BEGIN and COMMIT among them", 145, TWO_KEYS + SHORT),
         ("BEGIN, 5 statements, COMMIT", 145, TWO_KEYS + FIVE),
         ("INSERT of a row", 57, INSERT.format("inserted")),
         ("INSERT of a row, a secondary index", 69, INSERT.format("kv_ordered")))
# pg_ctl asks the program for its version first. Nodes are another program, which runs as it is.
WRAPPER = """#!/bin/sh
case "$1" in -V|--version) exec "{program}" "$@";; esac
exec valgrind --tool=cachegrind --cache-sim=no --trace-children=no -q \
  --cachegrind-out-file={counts}/%p --log-file=/dev/null "{program}" "$@"
"""


def read_book():
    """{name of a line: thousand instructions}."""
    if not os.path.exists(BOOK):
        return {}
    with open(BOOK, encoding="utf-8") as file:
        pairs = (line.rstrip("\n").split("\t") for line in file.readlines()[1:])
        return {name: float(value) for name, value in pairs}


def write_book(book):
    with open(BOOK, "w", encoding="utf-8") as file:
        file.write(BOOK_HEAD)
        file.writelines(f"{name}\t{value:.1f}\n" for name, value in book.items())


def beside(noted, value):
    """A remark on a figure that differs from the one that is noted; "" for one that does not."""
    if noted is None or abs(value / noted - 1) * 100 < MARK_PERCENT:
        return ""
    return f"{100 * (value / noted - 1):+.1f} % of the {noted:.1f} K that are noted"


class Server:
    """Started when the first line asks for it, since it is slow."""

    def __init__(self, flags):
        self.flags = argparse.Namespace(**{**vars(flags), "rows": min(flags.rows, ROWS)})
        self.folder = self.box = self.counts = None
        self.sides = {}

    def side(self, name):
        if self.folder is None:
            self._start()
        return self.sides[name]

    def _start(self):
        self.folder = tempfile.mkdtemp(prefix="rdmacc-instructions-", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        self.counts = os.path.join(self.folder, "counts")
        self.box = both_sides.new_box(os.path.join(self.folder, "box"), self.flags)
        self.box.create()
        self._wrap(self.box)
        self.sides = {side.name: side for side in both_sides.start(self.box, self.flags)}

    def _wrap(self, box):
        box.make_private(self.counts)
        program = os.path.join(box.bin, "postgres")
        os.rename(program, program + ".real")
        with open(program, "w", encoding="ascii") as file:
            file.write(WRAPPER.format(program=program + ".real", counts=self.counts))
        os.chmod(program, 0o755)

    def count(self, side, script, transactions):
        """Of a backend that has run so many, from its begin to its end."""
        before = set(glob.glob(self.counts + "/*"))
        command = side.box.command("pgbench", "-n", "-M", "prepared", "-c", "1", "-t",
                                   str(transactions), "-D", f"rows={rows_of(side.flags)}",
                                   "-D", "n=0", "-D", f"base={BASE + transactions * MANY}",
                                   "-f", "/dev/stdin")
        done = subprocess.run(command, env=side.environment(), cwd="/", text=True, input=script,
                              capture_output=True, timeout=RUN_SECONDS_MAX)
        if done.returncode != 0:
            raise Failure(done.stderr[-200:].strip())
        return self._largest(before)

    def _largest(self, before):
        """The session that asked first has done little. Counts are written at the end of a backend."""
        end = time.monotonic() + EXIT_SECONDS_MAX
        found = []
        while len(found) < SESSIONS and time.monotonic() < end:
            time.sleep(0.1)
            totals = (SUMMARY.search(self.box.read_as_server(path))
                      for path in set(glob.glob(self.counts + "/*")) - before)
            found = [int(total.group(1)) for total in totals if total]
        if len(found) < SESSIONS:
            raise Failure("valgrind has written no counts")
        return max(found)

    def close(self):
        if self.folder is not None:
            for side in self.sides.values():
                side.close()
            if self.box is not None:
                self.box.remove()
            shutil.rmtree(self.folder, ignore_errors=True)


class Instructions(Line):
    group = "instructions of a backend"
    unit = "K"
    by_time = True
    at_most = True

    def __init__(self, server, name, target, script):
        self.server = server
        self.name = name
        self.target = target
        self.script = script

    def sample(self, side, turn):
        if shutil.which("valgrind") is None:
            raise Skipped("valgrind is not installed (packages-ledger.txt)")
        try:
            slow = self.server.side(side.name)
            error = slow.setup("keyed rows", KEYED, rows=rows_of(slow.flags))
            if error is not None:
                raise Skipped(f"setup under valgrind: {error}")
            few, many = (self.server.count(slow, self.script, transactions)
                         for transactions in (FEW, MANY))
        except (Failure, subprocess.SubprocessError) as why:
            raise Skipped(f"under valgrind: {str(why)[-200:]}") from why
        value = (many - few) / (MANY - FEW) / 1000
        if side.name != "rdmacc":
            return Sample(value, last=True)
        book = read_book()
        note = beside(book.get(self.name), value)
        if self.server.flags.write:
            write_book({**book, self.name: value})
        return Sample(value, note, last=True)


def lines(server):
    return [Instructions(server, *line) for line in LINES]
