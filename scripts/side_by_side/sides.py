"""The throw-away server and its two databases, whose tables are heaps in one and rdmacc's in the other. Each
program has a schema of its own in both."""

import os
import shutil
import tempfile
import time

import psycopg2

from sandbox import Failure, Sandbox

from side_by_side.session import STATEMENT_SECONDS, Session
from side_by_side.statement import Statement

UP_SECONDS_MAX = 60
NAMES = ("rdmacc", "heap")
COMMON = {"statement_timeout": f"{STATEMENT_SECONDS}s", "TimeZone": "UTC", "client_min_messages": "error",
          "extra_float_digits": "1", "jit": "off", "max_parallel_workers_per_gather": "0"}
# What decides how rows are found, and not which.
PLANS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_nestloop", "enable_indexscan",
         "enable_bitmapscan", "enable_indexonlyscan", "enable_hashagg", "enable_sort")


class Server:
    def __init__(self, durability, build, instead=None):
        """`instead`: an isolation level at which heaps are in the place of rdmacc tables."""
        self.instead = instead
        self.folder = tempfile.mkdtemp(prefix="rdmacc-differential-", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        self.box = Sandbox(os.path.join(self.folder, "box"), build=build, settings={
            "rdmacc.nodes": 2, "rdmacc.node_memory": "512MB", "rdmacc.durability": durability,
            "autovacuum": "off", "deadlock_timeout": "100ms", "log_line_prefix": "%p %e ", "max_connections": 60})
        self.box.create()
        self.box.start()
        self.box.psql("CREATE EXTENSION rdmacc")
        for name in NAMES:
            self.box.psql(f"CREATE DATABASE {name}")
        self.box.psql("CREATE EXTENSION rdmacc", "rdmacc")
        self.box.psql("ALTER DATABASE rdmacc SET default_table_access_method = "
                      + ("heap" if instead else "rdmacc"))
        self.box.wait_for_nodes()
        self.admins = [self.session(name, "public", {}) for name in NAMES]

    def session(self, side, schema, settings):
        settings = {**COMMON, "search_path": schema, **settings}
        if self.instead and side == "rdmacc":
            settings["default_transaction_isolation"] = self.instead
        return Session(side, self.box.connection_string(side), settings, "heap" if self.instead else side)

    def revive(self):
        """After a crash: until the server is up again, with its nodes."""
        if all(not session.run(Statement("SELECT 1")).state for session in self.admins):
            return
        deadline = time.monotonic() + UP_SECONDS_MAX
        while True:
            try:
                self.box.wait_for_nodes()
                self.admins = [self.session(name, "public", {}) for name in NAMES]
                return
            except (Failure, psycopg2.Error):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def make_schema(self, name):
        self.revive()
        self.drop_schema(name)
        for session in self.admins:
            session.run(Statement(f"CREATE SCHEMA {name}"))

    def drop_schema(self, name):
        for session in self.admins:
            outcome = session.run(Statement(f"DROP SCHEMA IF EXISTS {name} CASCADE"))
            if outcome.state:
                raise Failure(f"DROP SCHEMA on {session.side}: {outcome.state} {outcome.message}")

    def close(self):
        for session in self.admins:
            session.close()
        self.box.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def settings(draw, protocol):
    """Of rdmacc's session, and of both."""
    ours = {"rdmacc.protocol": protocol, "rdmacc.stages": draw.pick(("one_sided", "one_sided", "rpc", "auto"))}
    if draw.chance(20):
        ours["rdmacc.ordered_keys"] = "on"
    if draw.chance(20):
        ours["rdmacc.lock_writes"] = "at_write"
    for name in draw.some(PLANS, 0, 3):
        ours[name] = "off"
    if draw.chance(40):
        ours["enable_seqscan"] = "off"
    if draw.chance(20):
        ours["plan_cache_mode"] = draw.pick(("force_generic_plan", "force_custom_plan"))
    return ours
