"""Lines of sysbench's OLTP workloads, as Debian ships them. It finds its table by
default_table_access_method, and starts a transaction that lost a conflict anew."""

import math
import re
import shutil
import subprocess

from sql_bench.lines import Line, Sample, Skipped
from sql_bench.loads import rows_of, run_load

WORKLOADS = ("oltp_read_write", "oltp_read_only", "oltp_point_select", "oltp_insert",
             "select_random_ranges")
RATE = re.compile(r"transactions: +\d+ +\(([\d.]+) per sec")
# select_random_ranges counts its queries as transactions, too.
CONFLICTS = re.compile(r"ignored errors: +(\d+)")
PREPARE_SECONDS_MAX = 300


class Sysbench(Line):
    group = "sysbench"
    unit = "1/s"

    def __init__(self, flags, workload):
        self.flags = flags
        self.name = workload

    def _command(self, side, workload, verb):
        box = side.box
        return ["sysbench", workload, "--db-driver=pgsql", "--tables=1",
                f"--table-size={rows_of(self.flags)}", f"--threads={self.flags.clients}",
                f"--time={max(1, math.ceil(self.flags.seconds))}", f"--pgsql-host={box.socket_dir}",
                f"--pgsql-port={box.port}", "--pgsql-user=postgres", f"--pgsql-db={side.name}", verb]

    def _prepare(self, side):
        if side.has("sysbench"):
            return None
        side.psql.run("DROP TABLE IF EXISTS sbtest1;", side.flags.timeout)
        done = subprocess.run(self._command(side, "oltp_read_write", "prepare"), cwd="/", text=True,
                              env=side.environment(), capture_output=True,
                              timeout=PREPARE_SECONDS_MAX)
        if done.returncode != 0:
            return (done.stdout + done.stderr)[-200:].replace("\n", " ")
        change = "ALTER TABLE sbtest1 SET UNLOGGED;\n" if side.unlogged else ""
        return side.setup("sysbench", change + "VACUUM ANALYZE sbtest1;")

    def sample(self, side, turn):
        if shutil.which("sysbench") is None:
            raise Skipped("sysbench is not installed (make test-deps)")
        error = self._prepare(side)
        if error is not None:
            return Sample(refused=f"setup: {error}")
        before = side.retries_by_server()
        sample = run_load(side, self._command(side, self.name, "run"), "",
                          self.flags.seconds + self.flags.timeout, self._read)
        sample.counts["retries by the server"] = side.retries_by_server() - before
        return sample

    @staticmethod
    def _read(output):
        rate, conflicts = RATE.search(output), CONFLICTS.search(output)
        if rate is None:
            return None
        return Sample(float(rate.group(1)), counts={"retries": int(conflicts.group(1))})


def lines(flags):
    return [Sysbench(flags, workload) for workload in WORKLOADS]
