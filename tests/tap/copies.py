"""Servers beside a sandbox whose data directories are copies of its own."""

import contextlib
import os
import subprocess

from harness import eventually
from sandbox import Sandbox


@contextlib.contextmanager
def copy_of(box, settings, name, **more):
    """A server with a tree of its own beside `box`, without data yet."""
    other = Sandbox(os.path.join(box.dir, name), settings={**settings, **more})
    os.makedirs(other.dir)
    subprocess.run(["cp", "-al", os.path.join(box.dir, "usr"), other.dir], check=True)
    for path in (other.socket_dir, os.path.dirname(other.log), other.data):
        other.make_private(path)
    try:
        yield other
    finally:
        try:
            other.stop("immediate")
        finally:
            if os.path.exists(other.log):
                print(other.log_text()[-2000:] if os.environ.get("BACKUP_LOGS") else "", end="")


def standby_of(box, settings):
    """A standby for all tests of a file, whose nodes follow."""
    standby = box.companions.enter_context(
        copy_of(box, settings, "standby", primary_conninfo=box.connection_string(),
                hot_standby_feedback="on"))
    base_backup(box, standby)
    standby.write_as_server("standby.signal", "")
    standby.start()
    wait_until_follows(standby)
    return standby


def wait_until_follows(standby):
    eventually(lambda: standby.psql("SELECT state FROM rdmacc.stat_durability") == "following",
               "the nodes follow", 60)


def catch_up(box, standby):
    """Until PostgreSQL has replayed what the primary has written; of rows nothing is waited for."""
    position = box.psql("SELECT pg_current_wal_flush_lsn()")
    eventually(lambda: standby.psql(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == "t",
               "the standby replays", 60)


def base_backup(box, other, *options):
    subprocess.run(box.as_server_user([
        os.path.join(box.bin, "pg_basebackup"), "-D", other.data, "-X", "stream", "-c", "fast",
        *options]), env=box.environment(), cwd="/", check=True, timeout=60)
