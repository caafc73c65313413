"""Lines under load: pgbench with several clients, by prepared statements and by the simple protocol.
Transactions that lose a conflict are tried again; how often stands beside the rates: by pgbench for
both sides, and by the server itself for rdmacc."""

import math
import os
import re
import subprocess

from sandbox import Failure
from smallbank import MIX, SCRIPTS, SmallBank

from sql_bench.lines import Line, Sample

TRIES_MAX = 1000
PER_SECOND = re.compile(r"^tps = ([\d.]+)", re.M)
COUNTS = {"retries": re.compile(r"^total number of retries: (\d+)", re.M),
          "given up": re.compile(r"^number of failed transactions: (\d+)", re.M)}
# As pgbench and sysbench tell it; sysbench names its call before.
ERROR = re.compile(r"(?:ERROR|FATAL): +(?:\w+\(\) failed: \d+ +)?(.*)")
KEYED = """DROP TABLE IF EXISTS kv, kv_ordered, inserted, inserted_hashed;
CREATE :TABLE kv (id int PRIMARY KEY, n int, filler text);
CREATE :TABLE kv_ordered (id int PRIMARY KEY, n int, filler text);
CREATE :TABLE inserted (id bigint PRIMARY KEY, n int, filler text);
CREATE :TABLE inserted_hashed (id bigint PRIMARY KEY, n int, filler text) :HASHED;
INSERT INTO kv SELECT i, 0, repeat('x', 60) FROM generate_series(1, :rows) i;
INSERT INTO kv_ordered SELECT i, i, repeat('x', 60) FROM generate_series(1, :rows) i;
CREATE INDEX kv_ordered_n ON kv_ordered (n);
VACUUM ANALYZE kv, kv_ordered;
CHECKPOINT;
"""
ONE_KEY = "\\set id random(1, :rows)\n"
TWO_KEYS = ONE_KEY + "\\set other random(1, :rows)\n"
SELECT = "SELECT filler FROM kv WHERE id = :id;\n"
UPDATE = "UPDATE kv SET n = n + 1 WHERE id = :id;\n"
SHORT = "BEGIN;\n" + SELECT + UPDATE + UPDATE.replace(":id", ":other") + "COMMIT;\n"
FIVE = ("BEGIN;\n" + SELECT + SELECT.replace(":id", ":other") + UPDATE
        + UPDATE.replace(":id", ":other") + SELECT + "COMMIT;\n")
RANGE = "\\set id random(1, :rows - 99)\nSELECT id, n, filler FROM kv_ordered WHERE {0} BETWEEN :id AND :id + 99;\n"
# Each client counts upwards from a place of its own, in every round another one.
INSERT = ("\\set n :n + 1\n\\set id :base + :client_id * 100000000 + :n\n"
          "INSERT INTO {0} VALUES (:id, :n, 'a text of some length, as rows have it');\n")


class Load(Line):
    group = "load"
    unit = "1/s"

    def __init__(self, flags, name, target, options, script=""):
        self.flags = flags
        self.name = name
        self.target = target
        self.options = options
        self.script = script

    def prepare(self, side):
        """What has to be there; an error's text, or None."""
        return side.setup("keyed rows", KEYED, rows=rows_of(self.flags))

    def sample(self, side, turn):
        error = self.prepare(side)
        if error is not None:
            return Sample(refused=f"setup: {error}")
        before = side.retries_by_server()
        sample = self._run(side, turn)
        by_server = side.retries_by_server() - before
        sample.counts["retries by the server"] = by_server
        return sample

    def _run(self, side, turn):
        seconds = max(1, math.ceil(self.flags.seconds))
        command = side.box.command(
            "pgbench", "-n", "-c", str(self.flags.clients), "-j", str(min(2, self.flags.clients)),
            "-T", str(seconds), f"--max-tries={TRIES_MAX}", "-D", f"rows={rows_of(self.flags)}",
            "-D", "n=0", "-D", f"base={turn * 10 ** 12}", *self.options)
        return run_load(side, command, self.script, seconds + self.flags.timeout, self._read)

    @staticmethod
    def _read(output):
        rate = PER_SECOND.search(output)
        if rate is None:
            return None
        counts = {name: int(found.group(1)) for name, pattern in COUNTS.items()
                  for found in [pattern.search(output)] if found}
        return Sample(float(rate.group(1)), counts=counts)


def run_load(side, command, script, limit_s, read, environment=None):
    """Of a program that puts load on a side: what `read` makes of its output."""
    limit = side.flags.timeout
    try:
        done = subprocess.run(command, env=environment or side.environment(limit), cwd="/",
                              text=True, input=script, capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Sample(refused=f"no end within {limit_s:.0f} s", last=True)
    sample = read(done.stdout)
    if done.returncode == 0 and sample is not None:
        return sample
    said = ERROR.search(done.stderr + done.stdout)
    message = said.group(1).strip() if said else (done.stderr or done.stdout)[-200:].strip()
    return Sample(refused=f"{side.sqlstate_of(message)} {message}".strip())


def rows_of(flags):
    return max(100, flags.rows // 10)


class Bank(Load):
    def prepare(self, side):
        if side.has("smallbank"):
            return None
        with open(os.path.join(SCRIPTS, "schema.sql"), encoding="utf-8") as file:
            schema = file.read().replace(" USING rdmacc", "").replace("CREATE TABLE", "CREATE :TABLE")
        error = side.psql.run("DROP TABLE IF EXISTS accounts, savings, checking, ledger;\n" + schema,
                              side.flags.timeout).error
        if error is not None:
            return error
        try:
            SmallBank(side.box, customers_of(self.flags), side.name).load()
        except Failure as failure:
            return str(failure).replace("\n", " ")[-200:]
        return side.setup("smallbank", "VACUUM ANALYZE accounts, savings, checking;")


def customers_of(flags):
    return max(1000, flags.rows // 50)


class Builtin(Load):
    """pgbench's own scripts."""

    def prepare(self, side):
        if side.has("pgbench"):
            return None
        scale = max(1, self.flags.rows // 100_000)
        command = side.box.command("pgbench", "-i", "-q", "-s", str(scale),
                                   *(["--unlogged-tables"] if side.unlogged else []))
        done = subprocess.run(command, env=side.environment(), cwd="/", text=True,
                              capture_output=True, timeout=300)
        if done.returncode != 0:
            return done.stderr[-200:]
        side.prepared.add("pgbench")
        return None


class Inserts(Load):
    def __init__(self, flags, name, target, table):
        super().__init__(flags, name, target, ["-M", "prepared", "-f", "/dev/stdin"],
                         INSERT.format(table))
        self.table = table

    def _run(self, side, turn):
        side.psql.run(f"TRUNCATE {self.table};", side.flags.timeout)
        return super()._run(side, turn)


def lines(flags):
    scripts = {"SELECT by primary key": ONE_KEY + SELECT, "UPDATE by primary key": ONE_KEY + UPDATE,
               "BEGIN, 5 statements, COMMIT": TWO_KEYS + FIVE}
    bank = [word for name, weight in MIX.items() for word in ("-f", f"{SCRIPTS}/{name}.sql@{weight}")]
    for mode, target in (("prepared", 1.2), ("simple", 1.0)):
        for name, script in scripts.items():
            yield Load(flags, f"{name}, {mode}", target, ["-M", mode, "-f", "/dev/stdin"], script)
        yield Bank(flags, f"SmallBank, {mode}", target,
                   ["-M", mode, "-D", f"customers={customers_of(flags)}", *bank])
    yield Inserts(flags, "INSERT of a row", 1.0, "inserted")
    yield Inserts(flags, "INSERT of a row, ordered_key = off", 1.0, "inserted_hashed")
    yield Load(flags, "connections with a first SELECT", 0.9, ["-C", "-f", "/dev/stdin"],
               ONE_KEY + SELECT)
    for script in ("tpcb-like", "simple-update"):
        yield Builtin(flags, f"pgbench {script}", 1.0, ["-M", "prepared", "-b", script])
    for name, column in (("primary key", "id"), ("secondary index", "n")):
        yield Load(flags, f"range of 100 rows, {name}", 1.0, ["-M", "prepared", "-f", "/dev/stdin"],
                   RANGE.format(column))
