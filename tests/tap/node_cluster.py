"""Nodes that no server runs, with `durability = disk`, on loopback, and clients that count (tests/durable)."""

import collections
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading

from harness import Unmet, eventually, true
from sandbox import free_ports

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_S = 90  # where memory that the host has taken back is cleared, a node takes half a minute
END_S = 20
ANSWER_S = 10


class Writer:
    """rdmacc_ledger's clients; what they were told is kept."""

    def __init__(self, cluster, how, clients, protocol, stages):
        self.told = collections.Counter()  # client: the last number that was acknowledged
        self.decided = []  # to commit, of those that prepare
        self.process = subprocess.Popen(
            [cluster.ledger, cluster.config, how, str(clients), protocol, stages],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if line.endswith("\n"):
                client, number, *xid = map(int, line.split())
                self.told[client] = number
                self.decided += xid

    def count(self):
        """Of acknowledged commits; the clients go on until they are killed."""
        true(self.process.poll() is None, "rdmacc_ledger has ended by itself")
        return sum(self.told.values())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(END_S)


class NodeCluster:
    def __init__(self, nodes=2, build=None, environment=None):
        self.dir = tempfile.mkdtemp(prefix="rdmacc-disks-")
        self.build = build or os.environ.get("RDMACC_BUILD") or os.path.join(REPOSITORY,
                                                                              "build/release")
        self.ledger = os.path.join(self.build, "tests/rdmacc_ledger")
        self.data = os.path.join(self.dir, "data")
        self.make_private(self.data)
        self.name = f"disks-{os.getpid()}-{secrets.token_hex(3)}"
        self.config = os.path.join(self.dir, "config")
        self.environment = environment or {}
        self.nodes = [None] * nodes
        self.totals = collections.Counter()  # of all writers: the last number that was told
        with open(os.open(os.path.join(self.dir, "secret"), os.O_CREAT | os.O_WRONLY, 0o600),
                  "wb") as file:
            file.write(secrets.token_bytes(48))
        addresses = ", ".join(f"127.0.0.1:{port}" for port in free_ports(nodes))
        with open(self.config, "w", encoding="ascii") as file:
            file.write(f"name = {self.name}\nnodes = {addresses}\nsecret_file = secret\n"
                       "memory_mb = 128\nworkers_max = 16\ndurability = disk\ndata_dir = data\n"
                       "checkpoint_log_mb = 1\n")

    def make_private(self, folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def remove(self):
        self.lose_all_memory()
        shutil.rmtree(self.dir, ignore_errors=True)

    def log(self, node):
        with open(os.path.join(self.dir, f"node{node}.log"), encoding="utf-8") as file:
            return file.read()

    def launch(self, node, *flags):
        with open(os.path.join(self.dir, f"node{node}.log"), "ab") as log:
            self.nodes[node] = subprocess.Popen(
                [os.path.join(self.build, "bin/rdmacc_node"), f"--config={self.config}",
                 f"--node={node}", *flags], stdout=subprocess.PIPE, stderr=log, text=True,
                env=dict(os.environ, **self.environment))

    def await_ready(self, node):
        timer = threading.Timer(START_S, self.nodes[node].kill)
        timer.start()
        line = self.nodes[node].stdout.readline()
        timer.cancel()
        true(line == "ready\n", f"node {node} did not start: {self.log(node)[-1500:]}")

    def start(self, *flags, nodes=None):
        which = range(len(self.nodes)) if nodes is None else nodes
        for node in which:
            self.launch(node, *flags)
        for node in which:
            self.await_ready(node)

    def ends(self, node):
        """Its exit code; it must end by itself."""
        try:
            return self.nodes[node].wait(END_S)
        except subprocess.TimeoutExpired:
            raise Unmet(f"node {node} does not end: {self.log(node)[-1500:]}") from None

    def stop_all(self, how=signal.SIGTERM):
        for node in self.nodes:
            if node is not None and node.poll() is None:
                node.send_signal(how)
        for number, node in enumerate(self.nodes):
            if node is not None:
                self.ends(number)
                node.stdout.close()
                self.nodes[number] = None

    def kill_all(self):
        self.stop_all(signal.SIGKILL)

    def kill(self, node, memory=False):
        """Its process, or its host with what its memory had."""
        self.nodes[node].kill()
        self.nodes[node].wait()
        if memory:
            self.forget_memory(node=node)

    def lose_all_memory(self, writer=None):
        """All nodes are killed, beside the clients of `writer`, and what their hosts' memory had is gone."""
        self.kill_all()
        if writer is not None:
            self.note(writer)
        self.forget_memory()

    def forget_memory(self, node=None):
        """As a crash of the hosts does: of all nodes, or of one."""
        ends = {None: "", 0: ("node0", "members")}.get(node, f"node{node}")  # node 0's knows the members
        for name in os.listdir("/dev/shm"):
            if name.startswith(f"rdmacc.tcp.{self.name}.") and name.endswith(ends):
                os.unlink(os.path.join("/dev/shm", name))
            elif node is None and self.name in name:
                os.unlink(os.path.join("/dev/shm", name))

    # ---- What clients were told, and what there is

    def write(self, clients=8, protocol="occ", stages="one_sided", how="write"):
        return Writer(self, how, clients, protocol, stages)

    def decide(self, writer):
        """Says how each transaction in doubt of a writer that prepared them has ended; how many there were."""
        decided = []

        def all_decided():
            try:
                result = subprocess.run([self.ledger, self.config, "decide", *map(str, writer.decided)],
                                        capture_output=True, text=True, timeout=ANSWER_S)
            except subprocess.TimeoutExpired:
                return False
            decided.extend(result.stdout.split())
            return result.returncode == 0
        eventually(all_decided, "nothing is in doubt", START_S + ANSWER_S)
        return len(decided)

    def note(self, writer):
        writer.kill()
        for client, number in writer.told.items():
            self.totals[client] = max(self.totals[client], number)

    def rows(self):
        lines = []

        def all_read():  # one node may say that it is ready a moment before another one
            result = subprocess.run([self.ledger, self.config, "read"], capture_output=True, text=True,
                                    timeout=START_S)
            lines[:] = result.stdout.splitlines()
            return result.returncode == 0
        eventually(all_read, "rows are read", START_S)
        return [tuple(map(int, line.split())) for line in lines]

    def check(self, more=1):
        """Of each client: both rows have one number, just its row is there, and no commit that was
        acknowledged is missing; one that was not may be there, unless `more` is 0."""
        found = collections.defaultdict(dict)
        for key, client, number in self.rows():
            found[client][key] = number
        for client, told in self.totals.items():
            rows = found[client]
            number = rows.get(0)
            what = f"client {client}, told {told}: {rows}"
            true(number is not None and rows == {0: number, 1: number, 2**32 + number: number},
                 f"rows of one transaction: {what}")
            true(told <= number <= told + more, f"acknowledged commits: {what}")
            self.totals[client] = number
