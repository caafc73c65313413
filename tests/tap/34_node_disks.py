#!/usr/bin/env python3
"""Nodes that no server runs keep their rows on disk: killed in every way beside clients that count, on a
disk that forgets what was not synced, that is full, or that fails."""

import argparse
import concurrent.futures
import errno
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import power
from harness import eventually, matches, true
from node_cluster import NodeCluster
from protocol_list import WITHOUT_ORDER as PROTOCOLS

CYCLES = int(os.environ.get("DISK_CYCLES", "3"))
AT_ONCE = 4  # tests
COMMITS = 250  # of all clients, before anything happens
WAIT_S = 60  # for what a busy disk may take


def load(cluster, protocol="occ", stages="one_sided", commits=COMMITS, how="write"):
    writer = cluster.write(protocol=protocol, stages=stages, how=how)
    eventually(lambda: writer.count() >= commits + sum(cluster.totals.values()),
               f"commits under {protocol}, {stages}", WAIT_S)
    return writer


def checkpoints(cluster):
    return sum(cluster.log(node).count("a checkpoint of") for node in (0, 1))


def all_killed(cluster):
    """And all memory lost, again and again."""
    cluster.start()
    for cycle in range(CYCLES):
        writer = load(cluster, random.choice(PROTOCOLS), random.choice(("one_sided", "rpc")))
        if cycle == 0:
            eventually(lambda: checkpoints(cluster) > 0, "a checkpoint beside traffic", WAIT_S)
        time.sleep(random.random() * 0.3)
        cluster.lose_all_memory(writer)
        cluster.start()
        cluster.check()


def all_killed_memory_kept(cluster):
    """What dead coordinators have left is on disk before others see it."""
    cluster.start()
    writer = load(cluster)
    cluster.kill_all()
    cluster.note(writer)
    cluster.start()
    cluster.check()
    writer = load(cluster)
    cluster.lose_all_memory(writer)
    cluster.start()
    cluster.check()


def one_killed(cluster):
    """Its memory is there; clients go on when it is back."""
    cluster.start()
    writer = load(cluster)
    for node in (1, 0):
        cluster.kill(node)
        cluster.start(nodes=[node])
        before = writer.count()
        eventually(lambda: writer.count() > before + COMMITS, f"commits after node {node} is back", WAIT_S)
    cluster.lose_all_memory(writer)
    cluster.start()
    cluster.check()


def killed_client(cluster):
    """Nodes go on; its transactions are finished or undone, on disk too."""
    cluster.start()
    for _ in range(2):
        cluster.note(load(cluster))
    eventually(lambda: cluster.log(0).count("died") >= 2, "the clients are resolved")
    cluster.check()
    cluster.lose_all_memory()
    cluster.start()
    cluster.check()


def clean_stop(cluster):
    cluster.start()
    cluster.note(load(cluster))
    cluster.stop_all()
    cluster.forget_memory()
    cluster.start()
    cluster.check()


def clients_outlive_nodes(cluster):
    """What they know of the nodes' memory is of one that is gone."""
    cluster.start()
    writer = load(cluster)
    cluster.lose_all_memory()
    cluster.start()
    time.sleep(2)
    cluster.note(writer)
    cluster.check()
    cluster.note(load(cluster))
    cluster.check()


def one_memory_lost(cluster):
    """The others' memory refers to what is gone: all get their rows from disk, and clients go on."""
    cluster.start()
    for node in (1, 0):
        writer = load(cluster)
        cluster.kill(node, memory=True)
        cluster.start(nodes=[node])
        matches("has lost its own: it is told", cluster.log(node), f"what node {node} says")
        matches("starts anew: .*another node has lost its memory", cluster.log(1 - node),
                f"what node {1 - node} says")
        cluster.note(writer)
        cluster.check()
    cluster.note(load(cluster))
    cluster.check()


def one_memory_lost_before_the_first_table(cluster):
    """Its folder has a checkpoint of nothing."""
    cluster.start()
    for node in (1, 0):
        cluster.kill(node, memory=True)
        cluster.start(nodes=[node])
    cluster.note(load(cluster))
    cluster.check()


def killed_with_its_checkpoint(cluster):
    """A node that dies when it has loaded its rows, and another one has not, is of the others' time."""
    cluster.start()
    cluster.note(load(cluster))
    for _ in range(CYCLES):
        cluster.lose_all_memory()
        restored = cluster.log(1).count("restored")
        cluster.launch(0)
        cluster.launch(1)
        until = time.monotonic() + WAIT_S
        while cluster.log(1).count("restored") == restored and time.monotonic() < until:
            time.sleep(0.001)
        cluster.nodes[0].send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        cluster.kill(1)
        cluster.launch(1)
        time.sleep(0.2)
        cluster.nodes[0].send_signal(signal.SIGCONT)
        cluster.await_ready(0)
        cluster.await_ready(1)
        cluster.check()
        cluster.kill(1, memory=True)
        cluster.start(nodes=[1])
        cluster.check()


def one_folder_lost(cluster):
    """A node must not go on without its rows, nor take the others' from them."""
    cluster.start()
    cluster.note(load(cluster))
    for what in ("is empty", "is of another time"):
        cluster.kill(1, memory=True)
        kept, folder = os.path.join(cluster.dir, "kept"), os.path.join(cluster.data, "node1")
        os.rename(folder, kept)
        if what == "is of another time":
            shutil.copytree(os.path.join(cluster.dir, "first"), folder)
        for _ in range(2):
            cluster.launch(1)
            true(cluster.ends(1) != 0, f"a node started whose folder {what}")
        true(cluster.log(1).count(what) >= 2, f"what node 1 says: {cluster.log(1)[-1500:]}")
        shutil.rmtree(folder)
        os.rename(kept, folder)
        if what == "is empty":
            shutil.copytree(folder, os.path.join(cluster.dir, "first"))
            cluster.start(nodes=[1])  # of the next generation
            cluster.check()
    cluster.start(nodes=[1])
    cluster.check()


def damaged_files(cluster):
    cluster.start()
    cluster.note(load(cluster))
    cluster.lose_all_memory()
    log = sorted(glob.glob(os.path.join(cluster.data, "node1", "*.log")))[-1]
    with open(log, "rb") as file:
        whole = file.read()
    with open(log, "wb") as file:
        file.write(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    cluster.launch(0)
    cluster.launch(1)
    true(cluster.ends(1) != 0, "a node started on a damaged log")
    cluster.lose_all_memory()
    matches("damaged", cluster.log(1), "what node 1 says")
    with open(log, "wb") as file:
        file.write(whole + b"torn" * 20)
    cluster.start()
    matches("are cut off", cluster.log(1), "what node 1 says of a torn end")
    cluster.check()


def with_power(test):
    def run(cluster):
        layer = power.Power(cluster)
        cluster.environment = layer.environment
        test(cluster, layer)
    run.__name__ = test.__name__
    return run


def back_after_a_power_cut(cluster, layer):
    layer.cut()
    layer.begin()
    cluster.start()
    cluster.check()


@with_power
def power_cuts(cluster, layer):
    cluster.start()
    for _ in range(CYCLES):
        writer = load(cluster)
        cluster.lose_all_memory(writer)
        back_after_a_power_cut(cluster, layer)


@with_power
def power_cut_after_a_kill(cluster, layer):
    """What a node reads when it starts on its memory may not be on disk yet."""
    cluster.start()
    for _ in range(CYCLES):
        writer = load(cluster, commits=COMMITS // 2)
        for _ in range(3):
            cluster.kill(1)
            cluster.start(nodes=[1])
        cluster.lose_all_memory(writer)
        back_after_a_power_cut(cluster, layer)


@with_power
def failing_disk(cluster, layer):
    """Nothing is acknowledged that is not there after the node has ended and power is cut."""
    for error, operations in ((errno.EIO, power.FSYNC), (errno.ENOSPC, power.WRITE | power.EXTEND)):
        cluster.start()
        writer = load(cluster)
        layer.fail(error, operations, "node1/*.log")
        true(cluster.ends(1) == 1, "exit code of the node whose disk has failed")
        matches("cannot (sync|write)", cluster.log(1), "what node 1 says")
        layer.heal()
        cluster.lose_all_memory(writer)
        back_after_a_power_cut(cluster, layer)
        cluster.stop_all()
        cluster.forget_memory()


def decided_elsewhere(cluster, layer=None):
    """What another system has decided to commit is there, and nothing else, whether the nodes had heard
    of it or not. They wait for it before they have rows."""
    cluster.start()
    in_doubt = cycle = 0
    cycles = max(CYCLES, 3)
    # Chance has it whether a client has just prepared something.
    while cycle < cycles or (in_doubt == 0 and cycle < 5 * cycles):
        writer = load(cluster, random.choice(PROTOCOLS), random.choice(("one_sided", "rpc")), how="prepare")
        if cycle == 0:
            eventually(lambda: checkpoints(cluster) > 0, "a checkpoint beside traffic", WAIT_S)
        if cycle % 3 == 1:
            cluster.kill_all()
            cluster.note(writer)
        else:
            cluster.lose_all_memory(writer)
        if layer is not None and cycle % 3 != 1:
            layer.cut()
            layer.begin()
        died = cluster.log(0).count("died:")
        cluster.launch(0)
        cluster.launch(1)
        if cycle % 3 == 1:
            eventually(lambda: cluster.log(0).count("died:") > died, "the clients are looked at", WAIT_S)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            deciding = None
            for _ in range(3 if cycle % 3 == 2 else 0):  # while nodes wait, and get their rows
                time.sleep(random.random() * 0.4)
                node = random.randrange(2)
                cluster.kill(node)
                cluster.launch(node)
                deciding = deciding or pool.submit(cluster.decide, writer)
            in_doubt += deciding.result() if deciding else cluster.decide(writer)
        cluster.await_ready(0)
        cluster.await_ready(1)
        cluster.check(more=0)
        cycle += 1
    true(in_doubt > 0, "nothing was ever in doubt")
    # What ended is known to the logs: nothing is left to ask for.
    for memory_lost in (False, True):
        cluster.kill_all()
        if memory_lost:
            cluster.forget_memory()
            if layer is not None:
                layer.cut()
                layer.begin()
        cluster.start()
        cluster.check(more=0)


@with_power
def decided_elsewhere_after_power_cuts(cluster, layer):
    decided_elsewhere(cluster, layer)


def bench(cluster):
    """The workloads' own checks after all nodes of a run were killed and have lost their memory."""
    for workload, *flags in (("ycsb", "--records=2000"),
                             ("tpcc", "--warehouses=1", "--customers=100", "--items=1000")):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(
                [os.path.join(cluster.build, "bin/rdmacc_bench"), workload, *flags,
                 "--durability=disk", f"--data-dir={folder}/rows", "--crash", "-T", "0.5",
                 "--memory=256"], capture_output=True, text=True, timeout=60)
            true(result.returncode == 0 and "invariant: ok" in result.stdout,
                 f"{workload}: {result.stdout}{result.stderr}")


TESTS = (all_killed_memory_kept, all_killed, one_killed, killed_client, clean_stop, one_memory_lost, one_folder_lost,
         one_memory_lost_before_the_first_table, killed_with_its_checkpoint,
         damaged_files, power_cuts, power_cut_after_a_kill, failing_disk, clients_outlive_nodes,
         decided_elsewhere, decided_elsewhere_after_power_cuts, bench)


def run_one(test, build):
    cluster = NodeCluster(build=build)
    began = time.monotonic()
    try:
        test(cluster)
        print(f"ok - {test.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        return True
    except Exception:  # pylint: disable=broad-except
        said = [f"not ok - {test.__name__}", traceback.format_exc()]
        for node in (0, 1):
            if os.path.exists(os.path.join(cluster.dir, f"node{node}.log")):
                said.append(f"log of node {node}:\n{cluster.log(node)[-2500:]}")
        print("\n".join(said), flush=True)
        return False
    finally:
        cluster.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=None)
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    chosen = [test for test in TESTS if not flags.names or test.__name__ in flags.names]
    # Each has a cluster of its own, and waits more than it computes.
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda test: run_one(test, flags.build), chosen))
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
