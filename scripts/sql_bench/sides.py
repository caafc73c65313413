"""The two sides of the comparison: two databases of one throw-away server, whose tables are heaps in
one and rdmacc's in the other by default_table_access_method. Every script runs on both unchanged; what
has to differ is in psql's variables: CREATE :TABLE name (…) :HASHED for a primary
key that finds whole keys alone."""

import os
import re
import time

from sandbox import Failure, Sandbox

from sql_bench.psql import Psql

NAMES = ("heap", "rdmacc")
NODES = 2
NODE_BYTES_A_ROW = 3000  # of the largest table, for all that is made of it
NODE_MB_MIN = 512
SETUP_SECONDS_MAX = 300
UP_SECONDS_MAX = 60


class Side:
    def __init__(self, box, name, flags):
        self.box = box
        self.name = name
        self.flags = flags
        self.unlogged = name == "heap" and flags.durability == "memory"
        self.variables = {
            "TABLE": "UNLOGGED TABLE" if self.unlogged else "TABLE",
            "HASHED": "WITH (rdmacc.ordered_key = off)" if name == "rdmacc" else "",
            "csv": os.path.join(box.data, f"bench_{name}.csv"),
        }
        self.prepared = set()
        self._psql = None

    @property
    def psql(self):
        """A session that is kept; another one when it has ended. Rows in memory may have gone with
        the server then, so that whatever has been set up is set up again."""
        if self._psql is not None and self._psql.ended:
            self._psql.close()
            self._psql = None
            self.prepared.clear()
            wait_until_up(self.box)
            self.box.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                          f" WHERE datname = '{self.name}'")
        if self._psql is None:
            self._psql = Psql(self.box.command("psql", "-X", "-A", "-t"), self.environment(),
                              self.variables)
        return self._psql

    def has(self, key):
        """Whether something has been set up, and is there still."""
        return self.psql is not None and key in self.prepared

    def environment(self, limit_s=0):
        return dict(self.box.environment(self.name),
                    PGOPTIONS=f"-c statement_timeout={int(limit_s * 1000)}")

    def setup(self, key, sql, **variables):
        """Runs `sql` unless it has been run under this key; an error's text, or None."""
        if self.has(key):
            return None
        for name, value in variables.items():
            self.psql.set(name, value)
        answer = self.psql.run("RESET ALL;\nSET client_min_messages = warning;\n" + sql,
                          SETUP_SECONDS_MAX)
        if answer.error is None:
            self.prepared.add(key)
        return answer.error

    def close(self):
        if self._psql is not None:
            self._psql.close()

    def retries_by_server(self):
        """How often the server itself has run a statement again (rdmacc.auto_retry)."""
        if self.name != "rdmacc":
            return 0
        return int(self.box.psql("SELECT coalesce(sum(retries), 0) FROM rdmacc.stat_retries"))

    def sqlstate_of(self, message):
        """What the server's log says of an error that a program has told without its SQLSTATE."""
        found = re.findall(r"^(\w{5}) (?:ERROR|FATAL):  " + re.escape(message), self.box.log_text(),
                           re.M)
        return found[-1] if found else ""


def settings(flags):
    megabytes = max(NODE_MB_MIN, flags.rows * NODE_BYTES_A_ROW >> 20)
    chosen = {
        "rdmacc.nodes": NODES,
        "rdmacc.node_memory": f"{megabytes}MB",
        "rdmacc.durability": flags.durability,
        "rdmacc.max_write_set": "4GB",  # all rows are written by one transaction
        "fsync": "on" if flags.durability == "disk" else "off",
        "default_transaction_isolation": "serializable",
        "shared_buffers": "1GB",
        "work_mem": "64MB",
        "max_wal_size": "8GB",
        "max_pred_locks_per_transaction": 1024,  # for the heap's side of sysbench's ranges
        # What would strike one side or the other by chance.
        "autovacuum": "off",
        "checkpoint_timeout": "1h",
        "jit": "off",
        "log_line_prefix": "%e ",
    }
    for setting in flags.set:
        name, _, value = setting.partition("=")
        chosen[name] = value
    return chosen


def new_box(folder, flags):
    return Sandbox(folder, settings=settings(flags), build=flags.build)


def start(box, flags):
    """The server; both sides."""
    box.start()
    for name in NAMES:
        box.psql(f"CREATE DATABASE {name}")
    for name in ("postgres", "rdmacc"):
        box.psql("CREATE EXTENSION rdmacc", name)
    box.psql("ALTER DATABASE rdmacc SET default_table_access_method = rdmacc")
    box.wait_for_nodes()
    return [Side(box, name, flags) for name in NAMES]


def wait_until_up(box):
    """After a crash."""
    end = time.monotonic() + UP_SECONDS_MAX
    while True:
        try:
            if not box.running():
                box.start()
            box.wait_for_nodes()
            return
        except Failure:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)
