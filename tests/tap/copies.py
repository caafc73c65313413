"""Servers beside a sandbox whose data directories are copies of its own."""

import contextlib
import os
import subprocess

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


def base_backup(box, other, *options):
    subprocess.run(box.as_server_user([
        os.path.join(box.bin, "pg_basebackup"), "-D", other.data, "-X", "stream", "-c", "fast",
        *options]), env=box.environment(), cwd="/", check=True, timeout=60)
