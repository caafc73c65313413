"""Load programs: transactions that failed are outcomes, rates are notes."""

import re
import shutil

from clients.side import SIDES, Unavailable, output_of

CLIENTS = 8
SETUP_S = 300
SECONDS = {True: 5, False: 3}


class Load:
    def __init__(self):
        self.rates = {}

    def note(self, side, workload, rate):
        self.rates.setdefault(workload, {})[side.access_method] = rate

    def notes(self):
        heap, ours = SIDES
        return [f"  {workload:28}{rates[heap]:10.0f}{rates[ours]:10.0f} a second"
                f"   ratio {rates[ours] / max(rates[heap], 1e-9):.2f}"
                for workload, rates in self.rates.items() if heap in rates and ours in rates]


class Pgbench(Load):
    """What a script of pgbench's does in blocks of READ COMMITTED, as it comes: a client that does
    not try again sees no conflict."""
    name = "pgbench"
    settings = {"rdmacc.lock_writes": "at_write"}
    WORKLOADS = {"tpcb-like": 1, "tpcb-like, scale 10": 10, "simple-update": 10, "select-only": 10}

    def prepare(self, whole):
        del whole

    def run(self, side, whole):
        outcomes, scale_now = {}, 0
        for workload, scale in self.WORKLOADS.items():
            if scale != scale_now:
                side.box.run("pgbench", "-i", "-q", "-s", str(scale), dbname=side.database,
                             capture_output=True, timeout=SETUP_S)
                scale_now = scale
            builtin = workload.split(",", maxsplit=1)[0]
            seconds = SECONDS[whole]
            printed = output_of(
                side.box.command("pgbench", "-n", "-b", builtin, "-c", str(CLIENTS), "-j", "2",
                                 "-T", str(seconds)), side.environment(), "/", seconds + SETUP_S)
            rate = re.search(r"^tps = ([\d.]+)", printed, re.M)
            failed = re.search(r"number of failed transactions: (\d+)", printed)
            if rate is None or failed is None:
                outcomes[workload] = printed[-300:]
                continue
            outcomes[workload] = f"{failed.group(1)} transactions failed"
            self.note(side, workload, float(rate.group(1)))
            if "select" not in builtin:
                outcomes[workload + ": balances"] = side.psql(
                    "SELECT (SELECT sum(abalance) FROM pgbench_accounts) ="
                    " (SELECT sum(delta) FROM pgbench_history)")
                side.psql("UPDATE pgbench_accounts SET abalance = 0 WHERE abalance <> 0;"
                          " DELETE FROM pgbench_history")
        return outcomes


class Sysbench(Load):
    name = "sysbench"
    settings = {}
    WORKLOADS = ("oltp_read_write", "oltp_read_only", "oltp_point_select", "oltp_insert",
                 "oltp_delete", "oltp_update_index", "oltp_update_non_index", "oltp_write_only",
                 "select_random_ranges", "select_random_points")

    def prepare(self, whole):
        del whole
        if shutil.which("sysbench") is None:
            raise Unavailable("sysbench is not installed (packages-clients.txt)")

    def run(self, side, whole):
        command = ["sysbench", "--db-driver=pgsql", "--tables=1", "--table-size=10000",
                   f"--threads={CLIENTS}", f"--time={SECONDS[whole]}",
                   f"--pgsql-host={side.box.socket_dir}", f"--pgsql-port={side.box.port}",
                   "--pgsql-user=postgres", f"--pgsql-db={side.database}"]
        outcomes = {}
        for workload in self.WORKLOADS:
            printed = ""
            for verb in ("prepare", "run", "cleanup"):
                printed += output_of([command[0], workload, *command[1:], verb],
                                     side.environment(), "/", SECONDS[whole] + SETUP_S)
            rate = re.search(r"transactions: +\d+ +\(([\d.]+) per sec", printed)
            failed = re.search(r"ignored errors: +(\d+)", printed)
            if rate is None or failed is None or "FATAL" in printed:
                outcomes[workload] = printed[-300:]
                continue
            outcomes[workload] = f"{failed.group(1)} transactions tried again"
            self.note(side, workload, float(rate.group(1)))
        return outcomes
