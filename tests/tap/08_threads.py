#!/usr/bin/env python3
"""Several threads in each node: stages by rpc are served by all of them, and no money is lost."""

import os
import signal

from harness import equal, eventually, node_pids, nodes_running, protocols, run, true
from smallbank import SmallBank

THREADS = 2
CUSTOMERS = 2000
CLIENTS = 6
SECONDS = 2
# Of the time of a node's threads, what each must have had: they serve every other session.
SHARE_MIN = 0.05


def serving_threads(pid):
    """The folders of a node's threads, without the one that makes memory ready."""
    folders = [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    return [folder for folder in folders if name_of(folder) != "rdmacc-backing"]


def name_of(thread):
    with open(f"{thread}/comm", encoding="ascii") as file:
        return file.read().strip()


def busy_ns(pid):
    """Processor time of each thread of a process."""
    times = {}
    for thread in serving_threads(pid):
        with open(f"{thread}/schedstat") as file:
            times[thread] = int(file.read().split()[0])
    return times


def each_node_has_as_many(box):
    equal(box.psql("SHOW rdmacc.node_threads"), str(THREADS), "node_threads")
    for pid in node_pids(box):
        eventually(lambda pid=pid: len(serving_threads(pid)) == THREADS,
                   f"threads of node process {pid}")


def smallbank_keeps_its_sums(box):
    bank = SmallBank(box, CUSTOMERS)
    bank.create()
    bank.load()
    for protocol in protocols(box):
        for stages in ("rpc", "lock=rpc,read=one_sided,log=rpc"):
            result = bank.run(CLIENTS, SECONDS, protocol, stages)
            true(result["committed_per_second"] > 0, f"{protocol}, {stages}: nothing committed")
            equal(result["failed"], 0, f"{protocol}, {stages}: failed transactions")
            equal(bank.money(), bank.expected_money(), f"money under {protocol}, {stages}")


def rpc_stages_are_spread_over_the_threads(box):
    bank = SmallBank(box, CUSTOMERS)
    pids = node_pids(box)
    before = {pid: busy_ns(pid) for pid in pids}
    bank.run(CLIENTS, SECONDS, "occ", "rpc")
    for pid in pids:
        after = busy_ns(pid)
        spent = [after[task] - before[pid][task] for task in after]
        print(f"  node process {pid}: {[ns // 1000 for ns in spent]} us by thread")
        true(min(spent) >= SHARE_MIN * sum(spent), f"work by thread of a node: {spent}")


def a_killed_node_comes_back_with_all_threads(box):
    pids = node_pids(box)
    os.kill(pids[1], signal.SIGKILL)
    eventually(lambda: pids[1] not in node_pids(box) and nodes_running(box), "the node is back")
    each_node_has_as_many(box)
    bank = SmallBank(box, CUSTOMERS)
    equal(bank.money(), bank.expected_money(), "money after the restart")


run(each_node_has_as_many, smallbank_keeps_its_sums, rpc_stages_are_spread_over_the_threads,
    a_killed_node_comes_back_with_all_threads,
    settings={"rdmacc.nodes": 2, "rdmacc.node_threads": THREADS, "rdmacc.node_memory": "256MB"})
