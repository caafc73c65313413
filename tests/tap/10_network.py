#!/usr/bin/env python3
"""A cluster whose two nodes are hosts as far as the network goes (namespaces with a link between
them): packets lost, the link away, peers killed, connections that are no member's. No wrong answer, no hang.
Needs root and network namespaces; without them it says so and counts nothing."""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from harness import Unmet, eventually, true

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(os.environ.get("RDMACC_BUILD", os.path.join(ROOT, "build/release")), "bin")
PORT = 7400
START_S = 40
RUN_S = 60  # beyond what a run was asked to take


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=20)


class Hosts:
    """Two namespaces, a link between them, a config file and a secret."""

    def __init__(self):
        self.name = f"net{os.getpid()}"
        self.spaces = [f"rdmacc{os.getpid()}{side}" for side in "ab"]
        self.links = [f"rdm{os.getpid() % 100000}{side}" for side in "ab"]
        self.addresses = ["10.199.77.1", "10.199.77.2"]
        self.folder = tempfile.mkdtemp(prefix="rdmacc-")
        self.config = os.path.join(self.folder, "cluster.conf")
        self.nodes = [None, None]

    def set_up(self):
        for space in self.spaces:
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
        ip("link", "add", self.links[0], "netns", self.spaces[0], "type", "veth",
           "peer", "name", self.links[1], "netns", self.spaces[1])
        for space, link, address in zip(self.spaces, self.links, self.addresses):
            ip("-n", space, "address", "add", address + "/24", "dev", link)
            ip("-n", space, "link", "set", link, "up")
        secret = os.path.join(self.folder, "secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(48))
        with open(self.config, "w", encoding="ascii") as file:
            nodes = ", ".join(f"{address}:{PORT}" for address in self.addresses)
            file.write(f"name = {self.name}\nnodes = {nodes}\nsecret_file = secret\n"
                       "memory_mb = 256\nworkers_max = 16\n")

    def tear_down(self):
        for node in self.nodes:
            if node is not None and node.poll() is None:
                node.kill()
                node.wait()
        for space in self.spaces:
            ip("netns", "del", space, check=False)
        for name in os.listdir("/dev/shm"):
            if name.startswith(f"rdmacc.tcp.{self.name}."):
                os.unlink(os.path.join("/dev/shm", name))
        shutil.rmtree(self.folder, ignore_errors=True)

    def within(self, side, *command):
        return ["ip", "netns", "exec", self.spaces[side], *command]

    def log(self, node):
        with open(os.path.join(self.folder, f"node{node}.log"), encoding="utf-8") as file:
            return file.read()

    def start(self, node):
        with open(os.path.join(self.folder, f"node{node}.log"), "ab") as log:
            self.nodes[node] = subprocess.Popen(
                self.within(node, os.path.join(BIN, "rdmacc_node"), f"--config={self.config}",
                            f"--node={node}"), stdout=subprocess.PIPE, stderr=log, text=True)
        timer = threading.Timer(START_S, self.nodes[node].kill)
        timer.start()
        line = self.nodes[node].stdout.readline()
        timer.cancel()
        true(line == "ready\n", f"node {node} did not start: {self.log(node)[-1000:]}")

    def kill(self, node):
        self.nodes[node].kill()
        self.nodes[node].wait()

    def link(self, side, state):
        ip("-n", self.spaces[side], "link", "set", self.links[side], state)

    def netem(self, *how):
        """False where the kernel does not have it."""
        return all(subprocess.run(self.within(side, "tc", "qdisc", "replace", "dev",
                                              self.links[side], "root", "netem", *how),
                                  check=False, capture_output=True, timeout=20).returncode == 0
                   for side in (0, 1))

    def flicker(self, stop):
        """Takes the link away for moments, and with it what is on its way."""
        while not stop.wait(0.2):
            self.link(1, "down")
            time.sleep(0.01)
            self.link(1, "up")

    def bench(self, side, seconds, *flags):
        """SmallBank with a table of its own: its process."""
        return subprocess.Popen(
            self.within(side, os.path.join(BIN, "rdmacc_bench"), "smallbank", "--fabric=tcp",
                        f"--config={self.config}", "-T", str(seconds), "--records=200", *flags),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, seconds):
    """What it printed and its exit code; it must end."""
    try:
        output, _ = process.communicate(timeout=seconds + RUN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Unmet(f"no end within {seconds + RUN_S} s") from None
    return output, process.returncode


def runs_well(hosts, side, *flags, seconds=2):
    history = os.path.join(hosts.folder, "history.jsonl")
    output, status = finish(hosts.bench(side, seconds, f"--history-file={history}", *flags),
                            seconds)
    true(status == 0 and "invariant: ok" in output, f"the run: {output}")
    checked = subprocess.run([os.path.join(BIN, "rdmacc_check"), "--preloaded", history],
                             capture_output=True, text=True, timeout=60)
    true(checked.returncode == 0, f"the history: {checked.stdout}{checked.stderr}")


def both_sides(hosts):
    for side in (0, 1):
        for stages in ("one_sided", "rpc"):
            runs_well(hosts, side, f"--stages={stages}")


def lost_packets(hosts):
    stop = threading.Event()
    flicker = threading.Thread(target=hosts.flicker, args=(stop,))
    with_netem = hosts.netem("loss", "5%", "delay", "1ms")
    if not with_netem:
        print("# no netem: the link flickers instead")
        flicker.start()
    try:
        for protocol in ("nowait", "occ"):
            runs_well(hosts, 0, f"--protocol={protocol}", seconds=4)
    finally:
        stop.set()
        if with_netem:
            hosts.netem("delay", "0ms")
        else:
            flicker.join()


def link_away_for_a_moment(hosts):
    run = hosts.bench(0, 8)
    time.sleep(3)
    hosts.link(1, "down")
    time.sleep(2)
    hosts.link(1, "up")
    output, status = finish(run, 8)
    true(status == 0 and "invariant: ok" in output, f"the run: {output}")


def link_away_for_long(hosts):
    run = hosts.bench(0, 10)
    time.sleep(3)
    hosts.link(1, "down")
    try:
        output, status = finish(run, 10)
        true(status == 1 and "unavailable" in output, f"the run: {output}")
    finally:
        hosts.link(1, "up")
    eventually(lambda: finish(hosts.bench(0, 1), 1)[1] == 0, "it works again", 60)
    runs_well(hosts, 1)


def killed_peers(hosts):
    run = hosts.bench(1, 20)
    time.sleep(3)
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=20)
    runs_well(hosts, 0)
    run = hosts.bench(0, 20)
    time.sleep(3)
    hosts.kill(1)
    output, status = finish(run, 20)
    true(status == 1, f"a run whose node died: {output}")
    hosts.start(1)
    eventually(lambda: finish(hosts.bench(0, 1), 1)[1] == 0, "it works again", 60)


def non_members(hosts):
    """Processes that do not know the secret, or speak something else, are refused and logged."""
    other = os.path.join(hosts.folder, "other.conf")
    with open(os.path.join(hosts.folder, "guess"), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(b"x" * 48)
    with open(hosts.config, encoding="ascii") as file:
        text = file.read().replace("secret_file = secret", "secret_file = guess")
    with open(other, "w", encoding="ascii") as file:
        file.write(text)
    command = [os.path.join(BIN, "rdmacc_bench"), "smallbank", "--fabric=tcp",
               f"--config={other}", "-T", "1"]
    done = subprocess.run(hosts.within(1, *command), capture_output=True, text=True, timeout=60)
    true(done.returncode == 1, f"a guess: {done.stdout}{done.stderr}")
    garbage = ("import os, socket\n"
               f"s = socket.create_connection(('{hosts.addresses[0]}', {PORT}), timeout=20)\n"
               "s.sendall(os.urandom(2000))\n"
               "s.settimeout(20)\n"
               "try:\n"
               "    while s.recv(4096): pass\n"
               "except ConnectionResetError: pass\n")
    subprocess.run(hosts.within(1, sys.executable, "-c", garbage), check=True, timeout=60)
    eventually(lambda: re.search(r"refused 10\.199\.77\.2:\d+: .*another secret", hosts.log(0)),
               "the guess is told")
    true(len(re.findall(r"refused 10\.199\.77\.2", hosts.log(0))) >= 2, "garbage is told")
    os.chmod(os.path.join(hosts.folder, "guess"), 0o644)
    done = subprocess.run(hosts.within(1, *command), capture_output=True, text=True, timeout=60)
    true("must have mode 0600" in done.stderr, f"an open secret: {done.stderr}")
    runs_well(hosts, 1)


def main():
    if shutil.which("ip") is None or shutil.which("tc") is None:
        print("skipped: there is no ip or tc (package iproute2)")
        print("0 passed, 0 failed")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # namespaces and nodes go, too
    hosts = Hosts()
    passed = failed = 0
    try:
        try:
            hosts.set_up()
        except subprocess.CalledProcessError as error:
            print(f"skipped: no network namespaces here: {error.stderr.strip()}")
            print("0 passed, 0 failed")
            return 0
        for node in (0, 1):
            hosts.start(node)
        for test in (both_sides, lost_packets, link_away_for_a_moment, link_away_for_long,
                     killed_peers, non_members):
            began = time.monotonic()
            try:
                test(hosts)
                passed += 1
                print(f"ok - {test.__name__} ({time.monotonic() - began:.0f} s)", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok - {test.__name__}\n{traceback.format_exc()}", flush=True)
                for node in (0, 1):
                    print(f"log of node {node}:\n{hosts.log(node)[-2000:]}", flush=True)
    finally:
        hosts.tear_down()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
