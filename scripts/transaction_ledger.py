#!/usr/bin/env python3
"""Instructions and allocations of a transaction: workload by protocol by primitive.

    make ledger ARGS='[--workloads=ycsb] [--protocols=nowait,occ] [--stages=one_sided] [--functions=N]
                      [--write] [-- MORE OPTIONS OF rdmacc_bench]'

Times on a shared machine are worth little; instructions repeat to within a percent. Each run is one coordinator
with one coroutine and one node under callgrind. The rows are loaded before the counting begins, and what is
counted is everything that the coordinator's process does in some seconds, scheduler and load generator included,
over the transactions in it, but for spins and sleeps that wait for an answer; and what the node's process does,
likewise. Beside each figure of the coordinator stands that of docs/ledger.tsv and the difference, marked from
5 % on; --write puts the new figures there. The most expensive functions (by themselves) of both follow with
--functions. Needs the Debian package valgrind. Exit code 1: nothing could be counted.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

from protocol_list import WITHOUT_ORDER

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOK = os.path.join(ROOT, "docs", "ledger.tsv")
COUNT_SECONDS = 3
RUN_SECONDS = 9
START_SECONDS_MAX = 240
MARK_PERCENT = 5
ALLOCATORS = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign")
# Of each workload: what a transaction calls once, and how much of it is loaded.
WORKLOADS = {"ycsb": ("rdmacc::Ycsb::execute", ["--records=200000"]),
             "smallbank": ("rdmacc::Smallbank::execute", ["--accounts=100000"]),
             "tpcc": ("rdmacc::Tpcc::execute", ["--items=10000", "--customers=300"])}
# Of the endpoint: what a worker does while it waits.
IDLE = ("rdmacc::ShmEndpoint::spin", "rdmacc::ShmEndpoint::wait", "rdmacc::ShmEndpoint::anything_there",
        "rdmacc::ShmEndpoint::forget_senders")


class Profile:
    """What a callgrind file says: instructions in all, by function, and how often each was called."""

    def __init__(self, path):
        self.total = 0
        self.own = {}
        self.calls = {}
        self._names = {}
        self._read(path)

    def _name(self, text):
        number, _, name = text.partition(" ")
        if name:
            self._names[number] = name
        return self._names.get(number, text)

    def _read(self, path):
        function, callee_line = None, False
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                line = line.rstrip("\n")
                if line.startswith("fn="):
                    function = self._name(line[3:])
                elif line.startswith("cfn="):
                    callee = self._name(line[4:])
                elif line.startswith("calls="):
                    count = int(line[6:].split(" ")[0])
                    self.calls[callee] = self.calls.get(callee, 0) + count
                    callee_line = True
                elif re.match(r"^[+\-*\d]", line):
                    cost = line.split(" ")
                    if not callee_line and len(cost) > 1:
                        self.own[function] = self.own.get(function, 0) + int(cost[1])
                    callee_line = False
        self.total = sum(self.own.values())

    def busy(self):
        return self.total - sum(cost for name, cost in self.own.items() if name.startswith(IDLE))

    def calls_of(self, prefix):
        return sum(count for name, count in self.calls.items() if name.startswith(prefix))

    def allocations(self):
        return sum(self.calls.get(name, 0) for name in ALLOCATORS)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def wait_for_progress(process, stderr_path):
    """Until the rows are loaded: the first line of progress is printed by the run itself."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        with open(stderr_path, encoding="utf-8", errors="replace") as file:
            if "progress:" in file.read():
                return True
        time.sleep(0.2)
    return False


def count(bench, workload, protocol, stages, options, folder):
    stderr_path = os.path.join(folder, "stderr")
    # A child is reached by callgrind_control only with --trace-children.
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--trace-children=yes",
               f"--callgrind-out-file={folder}/profile.%p", f"--log-file={folder}/log.%p",
               bench, workload, f"--protocol={protocol}", f"--stages={stages}", "--nodes=1", "-j", "1", "-c", "1",
               "-P", "1", f"-T{RUN_SECONDS}", "--check=workload"] + WORKLOADS[workload][1] + options
    with open(os.path.join(folder, "stdout"), "wb") as out, open(stderr_path, "wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
    try:
        if not wait_for_progress(process, stderr_path):
            return None
        node = children_of(process.pid)[0]
        for switch in ("on", "off"):
            for pid in (node, process.pid):
                subprocess.run(["callgrind_control", "-i", switch, str(pid)], check=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
            if switch == "on":
                time.sleep(COUNT_SECONDS)
        process.wait(timeout=START_SECONDS_MAX)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        return None
    return [Profile(os.path.join(folder, f"profile.{pid}")) for pid in (process.pid, node)]


def read_book():
    """(workload, protocol, stages) -> (instructions, allocations), as noted last."""
    with open(BOOK, encoding="ascii") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return {tuple(row[:3]): (float(row[3]), float(row[4])) for row in rows}


def write_book(book):
    with open(BOOK, "w", encoding="ascii") as file:
        file.write("workload\tprotocol\tstages\tinstructions\tallocations\n")
        for (workload, protocol, stages), (instructions, allocations) in book.items():
            file.write(f"{workload}\t{protocol}\t{stages}\t{instructions:.0f}\t{allocations:.2f}\n")


def beside(noted, instructions):
    if noted is None:
        return f"{'-':>10} {'':>9}"
    percent = 100 * (instructions / noted[0] - 1)
    return f"{noted[0]:>10.0f} {percent:>+7.1f} %{' <<' if percent >= MARK_PERCENT else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/release/bin/rdmacc_bench"))
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--protocols", default=",".join(WITHOUT_ORDER))
    parser.add_argument("--stages", default="one_sided,rpc")
    parser.add_argument("--functions", type=int, default=0, metavar="N",
                        help="list the N functions that cost most by themselves")
    parser.add_argument("--write", action="store_true", help="note the figures in docs/ledger.tsv")
    parser.add_argument("options", nargs="*", help="more options of rdmacc_bench")
    arguments = parser.parse_args()
    book = read_book()
    print(f"{'workload':10} {'protocol':10} {'stages':10} {'instructions':>12} {'allocations':>12} {'node':>8} "
          f"{'allocations':>12} {'noted':>10}   a transaction", flush=True)
    runs = itertools.product(arguments.workloads.split(","), arguments.protocols.split(","),
                             arguments.stages.split(","))
    for workload, protocol, stages in runs:
        with tempfile.TemporaryDirectory() as folder:
            profiles = count(arguments.bench, workload, protocol, stages, arguments.options, folder)
        transactions = profiles[0].calls_of(WORKLOADS[workload][0]) if profiles else 0
        if transactions == 0:
            print(f"{workload} {protocol} {stages}: no transaction was counted", file=sys.stderr)
            return 1
        (instructions, allocations), (of_node, nodes_own) = [
            (profile.busy() / transactions, profile.allocations() / transactions) for profile in profiles]
        noted = book.get((workload, protocol, stages))
        print(f"{workload:10} {protocol:10} {stages:10} {instructions:12.0f} {allocations:12.2f} {of_node:8.0f} "
              f"{nodes_own:12.2f} {beside(noted, instructions)}", flush=True)
        for which, profile in zip(("coordinator", "node"), profiles):
            for name, cost in sorted(profile.own.items(), key=lambda item: -item[1])[:arguments.functions]:
                print(f"    {cost / transactions:8.0f}  {which}: {name[:100]}")
        if arguments.write:
            book[workload, protocol, stages] = (instructions, allocations)
            write_book(book)
    return 0


if __name__ == "__main__":
    sys.exit(main())
