"""The engine against what it is meant to reach: ratios to a transaction that is written by hand for
the same memory (rdmacc_bench limits), and of the engine's own ways to each other. Rounds are
interleaved, so that a slow moment of the machine meets all of them."""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "build/release/bin/rdmacc_bench")
ROUNDS = 3
SECONDS = 2

YCSB = ["ycsb", "--nodes=1", "--records=1000000", "-j", "1"]
SMALLBANK = ["smallbank", "--nodes=1", "--protocol=nowait", "-j", "1", "-c", "1"]
TPCC = ["tpcc", "--nodes=1", "--protocol=nowait", "--warehouses=4", "--memory=3000", "-j", "1"]
RUNS = {"by hand": ["limits"]}
for protocol in ("nowait", "waitdie", "woundwait", "occ", "mvcc", "sundial"):
    RUNS[protocol] = YCSB + [f"--protocol={protocol}", "-c", "1"]
for coroutines in (1, 16):
    RUNS[f"one read at a time, {coroutines} coroutines"] = \
        YCSB + ["--protocol=nowait", "--reads-per-batch=1", "-c", str(coroutines)]
for stages in ("one_sided", "rpc"):
    RUNS[f"SmallBank, {stages}"] = SMALLBANK + [f"--stages={stages}"]
for coroutines in (1, 8):
    RUNS[f"TPC-C, {coroutines} coroutines"] = TPCC + ["-c", str(coroutines)]
for name, records in (("10 k rows", 10_000), ("10 M rows", 10_000_000)):
    RUNS[f"by hand, {name}"] = ["limits", f"--records={records}"]
    RUNS[f"nowait, {name}"] = ["ycsb", "--nodes=1", f"--records={records}", "-j", "1", "-c", "1",
                               "--protocol=nowait", "--memory=6144"]

# What over what, and what the ratio is meant to be at least.
TARGETS = [("nowait", "by hand", 0.7), ("waitdie", "by hand", 0.55), ("woundwait", "by hand", 0.55),
           ("occ", "by hand", 0.55), ("mvcc", "by hand", 0.45), ("sundial", "by hand", 0.45),
           ("one read at a time, 16 coroutines", "one read at a time, 1 coroutines", 1.8),
           ("SmallBank, rpc", "SmallBank, one_sided", 0.5),
           ("TPC-C, 1 coroutines", "nowait", 0.3),
           ("TPC-C, 8 coroutines", "TPC-C, 1 coroutines", 1.01),
           ("RPC over tcp", "bare ping-pong over tcp", 0.7),
           # What 1,000 times the rows cost beyond what memory takes is at most 15 %.
           ("nowait, 10 M over 10 k rows", "by hand, 10 M over 10 k rows", 0.87)]

# Attempts that lost, as a share of all, are meant to be at most.
LOST_AT_MOST = [("TPC-C, 8 coroutines", 0.05)]


def result_of(words):
    more = [] if words[0] == "limits" else ["-T", str(SECONDS), "--check=workload"]
    done = subprocess.run([BENCH, *words, *more, "--format=json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=300, check=True)
    return json.loads(done.stdout)


def per_second(result):
    return result.get("committed_per_second") or result["handwritten_transactions_per_second"]


def print_targets():
    seen = {name: [] for name in RUNS}
    lost = {name: [] for name, _ in LOST_AT_MOST}
    for turn in range(ROUNDS):
        for number, (name, words) in enumerate(RUNS.items()):
            print(f"\rtargets, round {turn + 1} of {ROUNDS}, run {number + 1} of {len(RUNS)} ", end="",
                  file=sys.stderr, flush=True)
            result = result_of(words)
            seen[name].append(per_second(result))
            if name in lost:
                lost[name].append(result["abort_rate"])
            if words == ["limits"]:
                for side, name in (("ours_ns", "RPC over tcp"), ("machine_ns", "bare ping-pong over tcp")):
                    seen.setdefault(name, []).append(1e9 / result["rpc_tcp"][side])
    print(file=sys.stderr)
    median = {name: sorted(rates)[len(rates) // 2] for name, rates in seen.items()}
    for way in ("nowait", "by hand"):
        median[f"{way}, 10 M over 10 k rows"] = median[f"{way}, 10 M rows"] / median[f"{way}, 10 k rows"]
    print(f"\nYCSB, uniform, 1 M rows, batch reads, SmallBank and TPC-C; one thread, one coroutine unless said;"
          f" medians of {ROUNDS} runs of {SECONDS} s")
    print(f"{'what':<36}{'a second':>10}   {'over':<36}{'ratio':>6}{'wanted':>8}")
    for name, over, wanted in TARGETS:
        ratio = median[name] / median[over]
        print(f"{name:<36}{median[name]:>10,.{2 if median[name] < 10 else 0}f}   {over:<36}{ratio:>6.2f}{wanted:>8}"
              f"   {'pass' if ratio >= wanted else 'short'}")
    for name, most in LOST_AT_MOST:
        share = sorted(lost[name])[len(lost[name]) // 2]
        print(f"{name + ', attempts that lost':<36}{share:>10.1%}   {'':<36}{'':>6}{most:>8.0%}"
              f"   {'pass' if share <= most else 'short'}")
    print(f"by hand: {median['by hand']:,.0f} a second")
