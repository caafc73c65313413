#!/usr/bin/env python3
"""Instructions and allocations of a transaction, protocol by protocol.

    make ledger ARGS='[--bench=FILE] [--protocols=nowait,occ] [-- OPTIONS OF rdmacc_bench ycsb]'

Times on a shared machine are worth little; instructions repeat to within a percent. Each protocol runs
YCSB under callgrind, one coordinator with one coroutine. The rows are loaded before the counting begins,
and what is counted is everything the coordinator's process does in some seconds, scheduler and load
generator included, over the transactions in it. The ten most expensive functions (by themselves) follow
with --functions. Needs the Debian package valgrind. Exit code 1: nothing could be counted.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

COUNT_SECONDS = 4
RUN_SECONDS = 12
START_SECONDS_MAX = 240
TRANSACTION = "rdmacc::Ycsb::execute"
ALLOCATORS = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign")
DEFAULTS = ["--records=200000", "--nodes=1"]


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


def count(bench, protocol, options, folder):
    stderr_path = os.path.join(folder, "stderr")
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no",
               f"--callgrind-out-file={folder}/profile.%p", f"--log-file={folder}/log.%p",
               bench, "ycsb", f"--protocol={protocol}", "-j", "1", "-c", "1", "-P", "1",
               f"-T{RUN_SECONDS}", "--check=workload"] + options
    with open(os.path.join(folder, "stdout"), "wb") as out, open(stderr_path, "wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
    try:
        if not wait_for_progress(process, stderr_path):
            return None
        switch = ["callgrind_control", "-i"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(switch + ["on", str(process.pid)], check=True, **quiet)
        time.sleep(COUNT_SECONDS)
        subprocess.run(switch + ["off", str(process.pid)], check=True, **quiet)
        process.wait(timeout=START_SECONDS_MAX)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        return None
    return Profile(os.path.join(folder, f"profile.{process.pid}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bench", default="build/release/bin/rdmacc_bench")
    parser.add_argument("--protocols", default="nowait,waitdie,woundwait,occ,mvcc,sundial")
    parser.add_argument("--functions", type=int, default=0, metavar="N",
                        help="list the N functions that cost most by themselves")
    parser.add_argument("options", nargs="*", help="more options of rdmacc_bench ycsb")
    arguments = parser.parse_args()
    print(f"{'protocol':10} {'instructions':>12} {'allocations':>12}   a transaction", flush=True)
    for protocol in arguments.protocols.split(","):
        with tempfile.TemporaryDirectory() as folder:
            profile = count(arguments.bench, protocol, DEFAULTS + arguments.options, folder)
        transactions = profile.calls_of(TRANSACTION) if profile else 0
        if transactions == 0:
            print(f"{protocol}: no transaction was counted", file=sys.stderr)
            return 1
        print(f"{protocol:10} {profile.total / transactions:12.0f} "
              f"{profile.allocations() / transactions:12.2f}", flush=True)
        for name, cost in sorted(profile.own.items(), key=lambda item: -item[1])[:arguments.functions]:
            print(f"    {cost / transactions:8.0f}  {name[:100]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
