#!/usr/bin/env python3
"""make bench: what this machine can do and what the engine costs on it, as ratios measured side by
side in one run. With ARGS it is rdmacc_bench itself."""

import json
import os
import subprocess
import sys

from bench_targets import print_targets
from protocol_list import PROTOCOLS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "build/release/bin/rdmacc_bench")
ROUNDS = 3
SECONDS = 2


def committed_per_second(protocol, stages, coroutines, fabric="shm", accounts=100_000):
    command = [BENCH, "smallbank", f"--protocol={protocol}", f"--stages={stages}", "--nodes=2",
               f"--fabric={fabric}", "-c", str(coroutines), "-T", str(SECONDS),
               f"--accounts={accounts}", "--format=json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
                          check=True)
    result = json.loads(done.stdout)
    assert result["invariant"] == "ok", result["invariant"]
    return result["committed_per_second"]


def ycsb_per_second(stages, reads_per_batch, coroutines):
    command = [BENCH, "ycsb", "--protocol=nowait", f"--stages={stages}", "--nodes=2",
               "-c", str(coroutines), "-T", str(SECONDS), "--records=1000000",
               f"--reads-per-batch={reads_per_batch}", "--format=json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300,
                          check=True)
    result = json.loads(done.stdout)
    assert result["invariant"] == "ok", result["invariant"]
    return result["committed_per_second"]


def interleave():
    """Does it pay to run other transactions while verbs are in flight? First where it matters: a
    transaction that needs each record before it asks for the next, as SQL statements do. One that
    reads all its records in one batch has its own reads in flight together already."""
    forms = [("one_sided", 1), ("one_sided", 0), ("rpc", 1)]
    plans = [(*form, coroutines) for form in forms for coroutines in (1, 16)]
    seen = {plan: [] for plan in plans}
    for turn in range(ROUNDS):
        for plan, rates in seen.items():
            print(f"\rYCSB, round {turn + 1} of {ROUNDS} ", end="", file=sys.stderr, flush=True)
            rates.append(ycsb_per_second(*plan))
    print(file=sys.stderr)
    print(f"\nYCSB, uniform, 1 M rows, NOWAIT; medians of {ROUNDS} runs of {SECONDS} s")
    print(f"{'stages':<11}{'reads':<15}{'coroutines':>10}{'committed/s':>13}"
          f"{'ratio to 1 coroutine':>22}")
    for stages, batch, coroutines in plans:
        rate = median(seen[stages, batch, coroutines])
        print(f"{stages:<11}{'one at a time' if batch else 'in one batch':<15}{coroutines:>10}"
              f"{rate:>13,.0f}{rate / median(seen[stages, batch, 1]):>22.2f}")


def median(values):
    return sorted(values)[len(values) // 2]


def compare():
    """Every plan is run once in each round, so that a slow moment of the machine meets them all."""
    plans = [(protocol, stages, coroutines) for protocol in ("nowait", "occ")
             for stages in ("one_sided", "rpc") for coroutines in (1, 16)]
    seen = {plan: [] for plan in plans}
    for turn in range(ROUNDS):
        for number, plan in enumerate(plans):
            print(f"\rround {turn + 1} of {ROUNDS}, plan {number + 1} of {len(plans)} ",
                  end="", file=sys.stderr, flush=True)
            seen[plan].append(committed_per_second(*plan))
    print(file=sys.stderr)
    print(f"\nSmallBank, uniform, 2 nodes, one thread; medians of {ROUNDS} runs of {SECONDS} s")
    print(f"{'protocol':<10}{'stages':<11}{'coroutines':>10}{'committed/s':>13}"
          f"{'ratio to rpc':>14}{'ratio to 1 coroutine':>22}")
    for protocol, stages, coroutines in plans:
        rate = median(seen[protocol, stages, coroutines])
        print(f"{protocol:<10}{stages:<11}{coroutines:>10}{rate:>13,.0f}"
              f"{rate / median(seen[protocol, 'rpc', coroutines]):>14.2f}"
              f"{rate / median(seen[protocol, stages, 1]):>22.2f}")


def fabrics():
    """What it costs that nodes do not share memory: messages over loopback, carried out by their
    threads."""
    plans = [(protocol, stages)
             for protocol in PROTOCOLS
             for stages in ("one_sided", "rpc")]
    seen = {(plan, fabric): [] for plan in plans for fabric in ("shm", "tcp")}
    for turn in range(ROUNDS):
        for number, ((plan, fabric), rates) in enumerate(seen.items()):
            print(f"\rfabrics, round {turn + 1} of {ROUNDS}, run {number + 1} of {len(seen)} ",
                  end="", file=sys.stderr, flush=True)
            rates.append(committed_per_second(*plan, 16, fabric, accounts=10_000))
    print(file=sys.stderr)
    print(f"\nSmallBank, uniform, 2 nodes, 16 coroutines; medians of {ROUNDS} runs of {SECONDS} s")
    print(f"{'protocol':<10}{'stages':<11}{'shm/s':>13}{'tcp/s':>13}{'ratio to shm':>14}")
    for plan in plans:
        shm, tcp = (median(seen[plan, fabric]) for fabric in ("shm", "tcp"))
        print(f"{plan[0]:<10}{plan[1]:<11}{shm:>13,.0f}{tcp:>13,.0f}{tcp / shm:>14.3f}")


def main():
    if len(sys.argv) > 1:
        os.execv(BENCH, [BENCH, *sys.argv[1:]])
    subprocess.run([BENCH, "limits"], check=True, timeout=300)
    print_targets()
    compare()
    interleave()
    fabrics()


main()
