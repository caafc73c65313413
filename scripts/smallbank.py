"""SmallBank through SQL: tables USING rdmacc, the standard mix as pgbench scripts, the check that
no money was lost. Used by the demo and by tests."""

import glob
import os
import re
import subprocess

from sandbox import ROOT, Failure

SCRIPTS = os.path.join(ROOT, "scripts/smallbank")
MIX = {"send_payment": 17, "deposit_checking": 17, "balance": 17, "transact_savings": 16,
       "write_check": 17, "amalgamate": 16}
INITIAL_BALANCE = 1000
LOAD_ROWS = 5000  # a transaction
TRIES_MAX = 1000


class SmallBank:
    def __init__(self, box, customers, dbname="postgres"):
        self.box = box
        self.customers = customers
        self.dbname = dbname

    def create(self):
        with open(os.path.join(SCRIPTS, "schema.sql")) as file:
            self.box.psql(file.read(), self.dbname)

    def load(self, progress=lambda done, total: None):
        for first in range(1, self.customers + 1, LOAD_ROWS):
            last = min(first + LOAD_ROWS - 1, self.customers)
            ids = f"generate_series({first}, {last}) AS i"
            self.box.psql(
                f"INSERT INTO accounts SELECT i, 'customer ' || i FROM {ids};\n"
                f"INSERT INTO savings SELECT i, {INITIAL_BALANCE} FROM {ids};\n"
                f"INSERT INTO checking SELECT i, {INITIAL_BALANCE} FROM {ids};", self.dbname)
            progress(last, self.customers)

    def command(self, clients, seconds, log_prefix=None, threads=2):
        arguments = ["-n", "-M", "prepared", "-c", str(clients), "-j", str(threads),
                     "-T", str(seconds), f"--max-tries={TRIES_MAX}", "--failures-detailed",
                     "-D", f"customers={self.customers}"]
        for name, weight in MIX.items():
            arguments += ["-f", f"{SCRIPTS}/{name}.sql@{weight}"]
        if log_prefix:
            arguments += ["--log", f"--log-prefix={log_prefix}"]
        return self.box.command("pgbench", *arguments)

    def start(self, clients, seconds, protocol, stages="one_sided"):
        """The mix as a process under way, whose standard output is a pipe."""
        environment = self.box.environment(self.dbname)
        environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol} -c rdmacc.stages={stages}"
        return subprocess.Popen(self.command(clients, seconds), cwd="/", env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, clients, seconds, protocol, stages="one_sided"):
        """Runs the mix: committed per second, abort rate, latencies in ms."""
        logs = os.path.join(self.box.dir, "pgbench-logs")
        os.makedirs(logs, exist_ok=True)
        for old in glob.glob(os.path.join(logs, "*")):
            os.unlink(old)
        environment = self.box.environment(self.dbname)
        environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol} -c rdmacc.stages={stages}"
        result = subprocess.run(self.command(clients, seconds, os.path.join(logs, "run")),
                                env=environment, cwd="/", text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=seconds + 120)
        if result.returncode != 0:
            raise Failure(f"pgbench failed: {result.stderr[-2000:]}{result.stdout[-2000:]}")
        return summarise(result.stdout, read_latencies(logs))

    def money(self):
        """What the balances minus the ledger are; the same at all times. Not under the protocol that
        happens to be open: all three tables may be more than a transaction of CALVIN has room for."""
        return int(self.box.psql("SET rdmacc.protocol = occ; SELECT (SELECT sum(bal) FROM savings)"
                                 " + (SELECT sum(bal) FROM checking)"
                                 " - (SELECT coalesce(sum(delta), 0) FROM ledger)", self.dbname))

    def expected_money(self):
        return 2 * INITIAL_BALANCE * self.customers


def read_latencies(logs):
    latencies = []
    for path in glob.glob(os.path.join(logs, "run.*")):
        with open(path) as file:
            for line in file:
                time_us = line.split()[2]
                if time_us.isdigit():  # "failed" otherwise
                    latencies.append(int(time_us) / 1000)
    return sorted(latencies)


def number(pattern, text):
    match = re.search(pattern, text)
    return float(match.group(1)) if match else 0.0


def percentile(values, percent):
    return values[min(len(values) - 1, int(len(values) * percent / 100))] if values else 0.0


def summarise(text, latencies):
    committed = number(r"number of transactions actually processed: (\d+)", text)
    failed = number(r"number of failed transactions: (\d+)", text)
    aborted = number(r"total number of retries: (\d+)", text) + failed
    attempts = committed + aborted
    return {
        "committed_per_second": number(r"tps = ([\d.]+)", text),
        "abort_percent": 100 * aborted / attempts if attempts else 0.0,
        "failed": int(failed),
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
    }
