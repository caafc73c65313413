#!/usr/bin/env python3
"""Rows of rdmacc tables and heaps in one transaction, on nodes with disks of their own: nodes, their memory
and the server are lost under load, one by one and together, and both kinds of rows change, or neither."""

import os
import random
import signal
import time

from harness import equal, eventually, kill_a_client_backend, run
from operated_nodes import OperatedNodes
from protocol_list import WITHOUT_ORDER as PROTOCOLS
from transfers import ACCOUNTS, INITIAL, check_total, set_up, start_transfers

ROUNDS = int(os.environ.get("DISK_CYCLES", "1"))  # of each event
CLUSTER = f"mixed_{os.getpid()}"
ON_DISK = "durability = disk\ndata_dir = rows\ncheckpoint_log_mb = 1\n"
WAIT_S = 90  # dead clients of other hosts are noticed after a while


def lose(numbers):
    """These nodes are killed, and what their hosts' memory had is gone."""
    nodes.end(*numbers, by=signal.SIGKILL)
    for number in numbers:
        nodes.forget_memory_of(number)


def memory_of_all(_box):
    lose((0, 1))
    nodes.start(0, 1)


def memory_of_one(_box):
    number = random.randrange(2)
    lose((number,))
    nodes.start(number)


def a_node(_box):
    number = random.randrange(2)
    nodes.end(number, by=signal.SIGKILL)
    nodes.start(number)


def a_backend(box):
    kill_a_client_backend(box)


def server_and_memory(box):
    """The nodes wait for a server that is away."""
    box.stop("immediate")
    lose((0, 1))
    nodes.launch(0, 1)
    time.sleep(random.random())
    box.start()
    nodes.await_ready(0, 1)


def backend_and_memory(box):
    lose((0, 1))
    kill_a_client_backend(box)
    nodes.start(0, 1)


EVENTS = (memory_of_all, memory_of_one, server_and_memory, a_node, a_backend, backend_and_memory)


def both_kinds_or_neither(event):
    """A test: the event under load, ROUNDS times."""
    def test(box):
        for _ in range(ROUNDS):
            protocol = random.choice(PROTOCOLS)
            moved = f"SELECT sum(abs(v - {INITIAL})) FROM heap"
            before = box.psql(moved)
            load = start_transfers(box, protocol)
            eventually(lambda was=before: box.psql(moved) != was, "transfers", WAIT_S)
            time.sleep(random.random() * 0.5)
            began = time.monotonic()
            event(box)
            load.communicate(timeout=WAIT_S)
            eventually(lambda: box.psql("SELECT count(*) FROM ours") == str(ACCOUNTS), "rows are there", WAIT_S)
            check_total(box, WAIT_S)
            print(f"  {protocol}: {time.monotonic() - began:.1f} s; so far"
                  f" {box.log_text().count('was in doubt: it is')} transactions were in doubt, and nodes waited for"
                  f" {nodes.log_text(0).count('were prepared when memory was lost')} decisions", flush=True)
    test.__name__ = event.__name__
    return test


def on_nodes_of_their_own(box):
    global nodes
    box.stop()
    nodes = OperatedNodes(box, CLUSTER, ON_DISK)
    box.make_private(os.path.join(nodes.folder, "rows"))
    nodes.start(0, 1)
    box.settings = nodes.settings()
    box.start()
    box.wait_for_nodes()
    set_up(box)
    equal(box.psql("SELECT open_protocol FROM rdmacc.gate"), "occ", "the protocol of sessions that have set none")


nodes = None
try:
    run(on_nodes_of_their_own, *map(both_kinds_or_neither, EVENTS))
finally:
    if nodes is not None:
        nodes.remove()
