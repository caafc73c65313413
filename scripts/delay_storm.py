#!/usr/bin/env python3
"""Loads and runs of rdmacc_test_bench (rdmacc_bench with the tests' workloads) on real processes whose
verbs are delayed: shared memory and tcp, every protocol, a new distribution of the pauses in every run (rdma/fabric/verb_delays.h). A run's number
decides all of it: `--first=N --runs=1` repeats one. Prints a table, then each failed run with its
command and its pauses; the last line is "N passed, N failed", a run being one."""

import argparse
import collections
import concurrent.futures
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

from protocol_list import PROTOCOLS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How often a workload is drawn, and its settings: small, since a delayed load takes long.
WORKLOADS = {
    "ycsb": 8,
    "smallbank": 3,
    "tpcc": 3,
    "tatp": 1,
    "tpce": 1,
    "mixed": 2,
    "indexed": 1,
    "predicate": 1,
}
# A lost record of ycsb is noticed by a transaction that looks it up: most should be, once.
SECONDS = (("0.2", "0.5", "1"), ("1", "2", "4"))
# Flags of rdmacc_bench: what it checks in the end beyond the workload's invariant.
FINAL_CHECK = ("--check=full",)
TERMINATE_S_MAX = 10
JUDGE_S_MAX = 120

Run = collections.namedtuple("Run", "number workload protocol fabric command history")
Outcome = collections.namedtuple("Outcome", "run reason delays seconds")


def settings_of(workload, draw):
    if workload == "ycsb":
        return [f"--records={draw.choice((2000, 4000, 8000))}",
                f"--mix={draw.choice((0, 0, 0, 0, 1, 4, 5, 6))}"]
    if workload == "smallbank":
        return [f"--records={draw.choice((2000, 4000, 8000))}"]
    if workload == "tpcc":
        return ["--items=400", "--customers=30", f"--warehouses={draw.choice((1, 2))}",
                f"--full-mix={draw.choice((0, 1))}"]
    if workload in ("tatp", "tpce"):
        return [f"--records={draw.choice((20, 500))}"]
    if workload == "mixed":
        return [f"--keys={draw.choice((10, 40, 1000))}"]
    if workload == "indexed":
        return [f"--records={draw.choice((40, 2000))}"]
    return []


def draw_run(number, flags):
    draw = random.Random(number)
    workload = draw.choices(list(WORKLOADS), list(WORKLOADS.values()))[0]
    protocol = draw.choice(PROTOCOLS)
    fabric = draw.choice(("shm", "shm", "tcp"))
    command = [os.path.join(flags.build, "tests/rdmacc_test_bench"), workload,
               *settings_of(workload, draw), f"--protocol={protocol}", f"--fabric={fabric}",
               f"--nodes={draw.choice((1, 2, 2, 3))}",
               f"--threads-per-node={draw.choice((1, 1, 2))}",
               "-j", draw.choice("112"), "-c", draw.choice(("4", "16", "16")),
               f"--stages={draw.choice(('one_sided', 'one_sided', 'rpc', 'auto'))}",
               "--memory=256", "-T", draw.choice(SECONDS[workload == "ycsb"]), f"--seed={number}",
               f"--verb-delays={number}", *FINAL_CHECK]
    # Those whose invariant includes that the history is serializable.
    judged = workload in ("mixed", "indexed", "predicate")
    return Run(number, flags.workload or workload, flags.protocol or protocol,
               flags.fabric or fabric, chosen(command, flags, draw), judged)


def chosen(command, flags, draw):
    """With what the flags insist on."""
    command = list(command)
    if flags.workload:
        end = command.index(next(word for word in command if word.startswith("--protocol=")))
        command[1:end] = [flags.workload, *settings_of(flags.workload, draw)]
    for name in ("protocol", "fabric"):
        if getattr(flags, name):
            command = [f"--{name}={getattr(flags, name)}" if word.startswith(f"--{name}=")
                       else word for word in command]
    return command


def ended(command, limit_s):
    """Exit status and output; the status is None for what had no end."""
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    try:
        return process.communicate(timeout=limit_s)[0], process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()  # it ends its nodes
        try:
            return process.communicate(timeout=TERMINATE_S_MAX)[0], None
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0], None


def reason_of(output, status, limit_s):
    """Why a run failed; empty: it did not."""
    if status == 0:
        return ""
    lines = [line for line in output.splitlines()
             if line.startswith("rdmacc_bench: ") and "verb delays" not in line]
    said = lines[-1].removeprefix("rdmacc_bench: ") if lines else output.strip()[-300:]
    if status is None:
        return f"no end within {limit_s} s ({said})"
    return f"exit code {status}: {said}"


def judge(history, flags):
    command = [os.path.join(flags.build, "bin/rdmacc_check"), "--preloaded", history]
    output, status = ended(command, JUDGE_S_MAX)
    return "" if status == 0 else f"history: {output.strip()[-300:]}"


def carry_out(run, flags):
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rdmacc-delays-") as folder:
        history = os.path.join(folder, "history.jsonl")
        command = [*run.command, f"--history-file={history}"] if run.history else run.command
        output, status = ended(command, flags.limit)
        reason = reason_of(output, status, flags.limit)
        if run.history and not reason:
            reason = judge(history, flags)
    delays = re.search(r"verb delays: (.*)", output)
    return Outcome(run, reason, delays.group(1) if delays else "?", time.monotonic() - begin)


def table(outcomes):
    cells = collections.defaultdict(lambda: [0, 0, 0.0])
    for outcome in outcomes:
        for key in ((outcome.run.protocol, outcome.run.fabric), ("all", "")):
            cell = cells[key]
            cell[0] += 1
            cell[1] += 1 if outcome.reason else 0
            cell[2] += outcome.seconds
    lines = [f"{'protocol':<10}{'fabric':<8}{'runs':>6}{'failed':>8}{'seconds':>9}"]
    for (protocol, fabric), (runs, failed, seconds) in sorted(
            cells.items(), key=lambda item: (item[0][0] == "all", item[0])):
        lines.append(f"{protocol:<10}{fabric:<8}{runs:>6}{failed:>8}{seconds:>9.0f}")
    return "\n".join(lines)


def show_failure(outcome):
    print(f"failed: run {outcome.run.number}, {outcome.seconds:.1f} s: {outcome.reason}\n"
          f"  delays: {outcome.delays}\n  {shlex.join(outcome.run.command)}", flush=True)


def storm(flags):
    """Run after run until the time is over; `jobs` at a time."""
    outcomes = []
    lock = threading.Lock()
    numbers = iter(range(flags.first, flags.first + flags.runs))
    deadline = time.monotonic() + flags.seconds

    def work():
        while time.monotonic() < deadline:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            outcome = carry_out(draw_run(number, flags), flags)
            with lock:
                outcomes.append(outcome)
                if outcome.reason:
                    show_failure(outcome)

    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        for worker in [pool.submit(work) for _ in range(flags.jobs)]:
            worker.result()
    return outcomes


def main():
    parser = argparse.ArgumentParser(description="benchmarks under delayed verbs")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--seconds", type=float, default=60, help="no run starts later")
    parser.add_argument("--runs", type=int, default=1_000_000, help="at most so many")
    parser.add_argument("--first", type=int, default=1, help="number of the first run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=240, help="seconds of one run")
    parser.add_argument("--workload", choices=WORKLOADS, help="this one alone")
    parser.add_argument("--protocol", choices=PROTOCOLS, help="this one alone")
    parser.add_argument("--fabric", choices=("shm", "tcp"), help="this one alone")
    flags = parser.parse_args()
    outcomes = storm(flags)
    print(table(outcomes))
    failed = sum(1 for outcome in outcomes if outcome.reason)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
