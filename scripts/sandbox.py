#!/usr/bin/env python3
"""A throw-away PostgreSQL server with the extension rdmacc; the library behind make sandbox, the
demo and the tests.

    scripts/sandbox.py start DIR [--nodes N] [--port P] [--set name=value …]
    scripts/sandbox.py stop DIR

start makes what is missing in DIR (a tree of PostgreSQL's programs, a data directory) and starts
the server anew; its last line is a libpq connection string. As root, everything in DIR but the
tree belongs to user postgres, which runs the server."""

import argparse
import hashlib
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SERVER_USER = "postgres"
SERVER_PROGRAMS = ("initdb", "pg_ctl")
PG_CONFIG = os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")
PORTS = (16384, 32767)
PORT_TRIES = 200
INITDB_SECONDS_MAX = 30
SOCKET_PATH_MAX = 100  # a Unix socket's path has room for 107 bytes


def leave_when_asked():
    """SIGTERM, which the check sends when it is interrupted, ends the process as an error would:
    what it has started ends, too."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Failure(Exception):
    """Something the user has to know, in one sentence."""


class Sandbox:
    def __init__(self, directory, port=None, settings=None, build=None):
        leave_when_asked()
        self.dir = os.path.abspath(directory)
        self.bin = os.path.join(self.dir, "usr/lib/postgresql/15/bin")
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "log/server.log")
        self.build = build or os.environ.get("RDMACC_BUILD") or os.path.join(ROOT, "build/release")
        self.settings = dict(settings or {})
        self.server_environment = {}  # besides the caller's
        self.socket_dir = self._socket_dir()
        self.port = port or self._port_of_running() or free_port()

    # ---- Paths and users

    def _socket_dir(self):
        path = os.path.join(self.dir, "socket")
        if len(path) + len("/.s.PGSQL.65535") <= SOCKET_PATH_MAX:
            return path
        return "/tmp/rdmacc-" + hashlib.sha256(self.dir.encode()).hexdigest()[:16]

    def _port_of_running(self):
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as file:
                return int(file.read().split("\n")[3])
        except (OSError, IndexError, ValueError):
            return None

    @staticmethod
    def as_server_user(command):
        if os.getuid() != 0:
            return command
        return ["runuser", "-u", SERVER_USER, "--", *command]

    def make_private(self, path):
        os.makedirs(path, mode=0o700, exist_ok=True)
        os.chmod(path, 0o700)
        if os.getuid() == 0:
            user = pwd.getpwnam(SERVER_USER)
            os.chown(path, user.pw_uid, user.pw_gid)

    def _check_trusted(self):
        """Programs of DIR are run: it must be this user's, and no other may write there."""
        seen = os.lstat(self.dir)
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
            raise Failure(f"{self.dir} must be a directory that only its owner, you, may write to")

    def _check_reachable(self):
        os.makedirs(self.dir, mode=0o755, exist_ok=True)
        self._check_trusted()
        if os.getuid() != 0:
            return
        os.chmod(self.dir, os.stat(self.dir).st_mode | 0o111)
        if subprocess.run(self.as_server_user(["test", "-x", self.dir])).returncode != 0:
            raise Failure(f"user {SERVER_USER} cannot enter {self.dir}: choose another DIR")

    # ---- Life

    def create(self):
        """Makes the tree and, if there is none, an empty data directory."""
        self._check_reachable()
        subprocess.run([os.path.join(ROOT, "scripts/pg_tree.sh"), self.dir, self.build],
                       check=True)
        self.make_private(self.socket_dir)
        self.make_private(os.path.dirname(self.log))
        if os.path.exists(os.path.join(self.data, "PG_VERSION")):
            return
        self.make_private(self.data)
        self.run("initdb", "-D", self.data, "-U", SERVER_USER, "-A", "trust", "--no-locale",
                 "-E", "UTF8", "--no-sync", stdout=subprocess.DEVNULL)

    def write_settings(self):
        lines = {
            "shared_preload_libraries": "pg_rdmacc",
            "listen_addresses": "",
            "unix_socket_directories": self.socket_dir,
            "fsync": "off",
            **self.settings,
        }
        text = "".join("%s = '%s'\n" % (name, str(value).replace("'", "''"))
                       for name, value in lines.items() if value is not None)
        self.write_as_server("sandbox.conf", text)
        include = "include 'sandbox.conf'\n"
        if include not in self.read_as_server(os.path.join(self.data, "postgresql.conf")):
            self.write_as_server("postgresql.conf", include, "--append")

    # The server's user may put links where it may write: root does not follow them.
    def write_as_server(self, name, text, *options):
        subprocess.run(self.as_server_user(["tee", *options, os.path.join(self.data, name)]),
                       input=text, text=True, stdout=subprocess.DEVNULL, check=True, cwd="/")

    def read_as_server(self, path):
        return subprocess.run(self.as_server_user(["cat", path]), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, cwd="/").stdout.decode(errors="replace")

    def start(self):
        self.write_settings()
        for attempt in range(5):
            if attempt > 0:
                self.port = free_port()
            started = self.run("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "60",
                               "-o", f"-p {self.port}", "start", check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if started.returncode == 0:
                return
            if "in use" not in self.log_text()[-2000:]:
                break
        raise Failure(f"the server did not start: {started.stderr.decode(errors='replace')}"
                      f"{self.postmaster_state()}; its log ends with\n" + self.log_text()[-2000:])

    def stop(self, mode="fast"):
        """Ends the server; the seconds it took."""
        begin = time.monotonic()
        if self.running():
            stopped = self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", mode, "stop",
                               check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if stopped.returncode != 0:
                raise Failure(f"the server did not stop: "
                              f"{stopped.stderr.decode(errors='replace')}{self.postmaster_state()}")
        return time.monotonic() - begin

    def postmaster_state(self):
        """What the system says of the process, for messages."""
        try:
            pid = self.postmaster_pid()
        except (OSError, ValueError):
            return "no postmaster.pid"
        said = [f"postmaster {pid}"]
        for name in ("status", "wchan", "stack"):
            try:
                with open(f"/proc/{pid}/{name}") as file:
                    text = file.read()
            except OSError as error:
                text = str(error)
            said.append(f"{name}: {text[:400].strip()}")
        return "\n".join(said)

    def running(self):
        if not os.path.exists(os.path.join(self.data, "PG_VERSION")):
            return False
        status = self.run("pg_ctl", "-D", self.data, "status", check=False,
                          stdout=subprocess.DEVNULL)
        return status.returncode == 0

    def remove(self):
        self._await_initdb()
        self.stop("immediate")
        shutil.rmtree(self.dir, ignore_errors=True)
        if not self.socket_dir.startswith(self.dir):
            shutil.rmtree(self.socket_dir, ignore_errors=True)

    def _await_initdb(self):
        """The server of a single user that an interrupted initdb leaves ends by itself."""
        deadline = time.monotonic() + INITDB_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                pid = self.postmaster_pid()
            except (OSError, ValueError):
                return
            if pid > 0 or not os.path.exists(f"/proc/{-pid}"):
                return
            time.sleep(0.05)

    def postmaster_pid(self):
        with open(os.path.join(self.data, "postmaster.pid")) as file:
            return int(file.readline())

    def log_text(self):
        return self.read_as_server(self.log)

    def wait_for_nodes(self, seconds=60):
        """Until every node serves; a session that comes earlier waits by itself."""
        deadline = time.monotonic() + seconds
        while self.psql("SELECT bool_and(state IN ('running', 'remote'))"
                        " FROM rdmacc.stat_nodes") != "t":
            if time.monotonic() > deadline:
                raise Failure("the nodes did not start; the log ends with\n"
                              + self.log_text()[-2000:])
            time.sleep(0.05)

    # ---- Use

    def environment(self, dbname="postgres"):
        return dict(os.environ, PGHOST=self.socket_dir, PGPORT=str(self.port),
                    PGUSER=SERVER_USER, PGDATABASE=dbname)

    def connection_string(self, dbname="postgres"):
        return f"host={self.socket_dir} port={self.port} user={SERVER_USER} dbname={dbname}"

    def command(self, program, *arguments):
        """The command line of one of the tree's programs; those of the server run as its user."""
        command = [os.path.join(self.bin, program), *arguments]
        return self.as_server_user(command) if program in SERVER_PROGRAMS else command

    def run(self, program, *arguments, dbname="postgres", check=True, **options):
        options.setdefault("cwd", "/")
        environment = self.environment(dbname)
        if program in SERVER_PROGRAMS:
            environment.update(self.server_environment)
        return subprocess.run(self.command(program, *arguments), env=environment, check=check,
                              **options)

    def psql(self, sql, dbname="postgres", check=True, timeout=120):
        """Unaligned output of `sql`, without the last newline."""
        result = self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                          "-v", "VERBOSITY=verbose", dbname=dbname, check=False, input=sql,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout)
        if check and result.returncode != 0:
            raise Failure(f"psql failed on {sql!r}: {result.stderr}")
        return result.stdout.rstrip("\n") if check else result


def pgxs_program(path):
    """A test program that comes with the server's headers, such as test/regress/pg_regress."""
    makefile = subprocess.run([PG_CONFIG, "--pgxs"], text=True, check=True,
                              stdout=subprocess.PIPE).stdout.strip()
    return os.path.join(os.path.dirname(makefile), "..", path)


def free_ports(count):
    """Different ones, below those that Linux gives to connections by itself (as in the engine's
    loopback_cluster): whatever dials a server that is away would take its port from it otherwise."""
    held = []
    try:
        for _ in range(PORT_TRIES):
            probe = socket.socket()
            held.append(probe)
            try:
                probe.bind(("127.0.0.1", random.randint(*PORTS)))
            except OSError:
                held.pop().close()
            if len(held) == count:
                return [probe.getsockname()[1] for probe in held]
        raise Failure(f"no {count} free ports between {PORTS[0]} and {PORTS[1]}")
    finally:
        for probe in held:
            probe.close()


def free_port():
    return free_ports(1)[0]


def main():
    parser = argparse.ArgumentParser(description="a throw-away server with rdmacc")
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("dir")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--port", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    flags = parser.parse_args()
    settings = {"rdmacc.nodes": flags.nodes}
    for setting in flags.set:
        name, _, value = setting.partition("=")
        settings[name] = value
    sandbox = Sandbox(flags.dir, flags.port, settings)
    if flags.action == "stop":
        was_running = sandbox.running()
        sandbox.stop()
        print(f"Sandbox in {sandbox.dir} " + ("stopped." if was_running else "was not running."))
        return
    sandbox.stop()
    sandbox.create()
    sandbox.start()
    sandbox.psql("SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS rdmacc")
    sandbox.wait_for_nodes()
    print(f"Server log: {sandbox.log}\nConnection string for psql and every libpq client:")
    print(sandbox.connection_string())


if __name__ == "__main__":
    try:
        main()
    except (Failure, subprocess.CalledProcessError) as failure:
        sys.exit(f"sandbox: {failure}")
