#!/usr/bin/env python3
"""What COMMIT on disk costs: pgbench updates rows by primary key on rdmacc tables on disk and in memory, and
on a heap, in turns, at SERIALIZABLE; transactions a second, and the ratio to the heap's. Then transactions of
two updates: of an rdmacc table on disk and a heap (mixed), and of two heaps. Then both on a server whose nodes
run elsewhere (here: beside it, over tcp) and have disks of their own.

    scripts/durability_cost.py [--clients=1,8] [--seconds=5] [--rounds=3] [--no-fsync]"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

from operated_nodes import OperatedNodes
from sandbox import Sandbox

ROWS = 100_000
SETTINGS = {"rdmacc.nodes": 2, "rdmacc.node_memory": "512MB",
            "default_transaction_isolation": "serializable"}
TABLES = {"rdmacc": "rdmacc", "heap": "heap", "other": "heap"}  # and their access methods
MAKE = ("CREATE TABLE {0} (id int PRIMARY KEY, balance int, filler text) USING {1};"
        f"INSERT INTO {{0}} SELECT i, 0, repeat('x', 80) FROM generate_series(1, {ROWS}) i;")
DRAW = f"\\set id random(1, {ROWS})\n"
UPDATE = "UPDATE {0} SET balance = balance + 1 WHERE id = :id;\n"
TPS = re.compile(r"^tps = ([\d.]+)", re.M)


def server(folder, durability, fsync):
    box = Sandbox(os.path.join(folder, durability),
                  settings={**SETTINGS, "rdmacc.durability": durability, "fsync": fsync})
    box.create()
    return begin(box)


def server_of_nodes_elsewhere(folder, fsync):
    box = Sandbox(os.path.join(folder, "elsewhere"))
    box.create()
    nodes = OperatedNodes(box, f"cost-{os.getpid()}", "durability = disk\ndata_dir = rows\n")
    box.make_private(os.path.join(nodes.folder, "rows"))
    box.settings = {**SETTINGS, **nodes.settings(), "fsync": fsync}
    try:
        nodes.start(0, 1)
        return begin(box), nodes
    except BaseException:
        nodes.remove()
        raise


def begin(box):
    """Starts it, with tables."""
    box.start()
    box.psql("CREATE EXTENSION rdmacc")
    box.wait_for_nodes()
    for table, method in TABLES.items():
        box.psql(MAKE.format(table, method))
    box.psql("VACUUM ANALYZE")
    box.psql("CHECKPOINT")
    return box


def script(tables):
    """One transaction: an update of each of them."""
    updates = DRAW + "".join(UPDATE.format(table) for table in tables)
    if len(tables) == 1:
        return updates
    return updates.replace(DRAW, DRAW + "BEGIN;\n") + "COMMIT;\n"


def measure(box, tables, clients, seconds):
    command = box.command("pgbench", "-n", "-M", "prepared", "-T", str(seconds), "-c", str(clients),
                          "-j", "2", "--max-tries=20", "-f", "/dev/stdin")
    done = subprocess.run(command, env=box.environment("postgres"), cwd="/", text=True,
                          input=script(tables), capture_output=True,
                          timeout=seconds + 60)
    match = TPS.search(done.stdout)
    if match is None:
        raise SystemExit(f"pgbench failed: {done.stderr[-500:]}")
    return float(match.group(1))


def medians(kinds, clients, flags):
    """Transactions a second of each kind, in turns."""
    rates = {name: [] for name, _, _ in kinds}
    for _ in range(flags.rounds):
        for name, box, tables in kinds:
            rates[name].append(measure(box, tables, clients, flags.seconds))
    return {name: statistics.median(each) for name, each in rates.items()}


def print_table(kinds, of, to, flags):
    """And the ratio of two of the kinds."""
    print(f"{'clients':>8} " + " ".join(f"{name:>9}" for name, _, _ in kinds) + f" {of + '/' + to:>12}")
    for clients in map(int, flags.clients.split(",")):
        middle = medians(kinds, clients, flags)
        print(f"{clients:>8} " + " ".join(f"{middle[name]:>9.0f}" for name, _, _ in kinds)
              + f" {middle[of] / middle[to]:>12.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-fsync", action="store_true")
    flags = parser.parse_args()
    fsync = "off" if flags.no_fsync else "on"
    with tempfile.TemporaryDirectory(prefix="rdmacc-cost-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        boxes = {name: server(folder, name, fsync) for name in ("disk", "memory")}
        disk, memory = boxes["disk"], boxes["memory"]
        nodes = None
        try:
            print(f"fsync {fsync}, medians of {flags.rounds} rounds of {flags.seconds} s")
            print_table((("disk", disk, ["rdmacc"]), ("memory", memory, ["rdmacc"]),
                         ("heap", disk, ["heap"])), "disk", "heap", flags)
            print_table((("mixed", disk, ["rdmacc", "other"]), ("heaps", disk, ["heap", "other"])),
                        "mixed", "heaps", flags)
            print("nodes elsewhere, with disks of their own")
            boxes["elsewhere"], nodes = server_of_nodes_elsewhere(folder, fsync)
            elsewhere = boxes["elsewhere"]
            print_table((("disk", elsewhere, ["rdmacc"]), ("heap", elsewhere, ["heap"])), "disk", "heap", flags)
            print_table((("mixed", elsewhere, ["rdmacc", "other"]), ("heaps", elsewhere, ["heap", "other"])),
                        "mixed", "heaps", flags)
        finally:
            for box in boxes.values():
                box.stop("fast")
            if nodes is not None:
                nodes.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
