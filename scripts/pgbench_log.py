"""What pgbench's log of single transactions says of a run: latencies, and each second of it, as the JSON of
rdmacc_bench has them (engine/report/README.md)."""

import glob
import math
import os

SAMPLED = 0.1  # of all transactions: writing a line for each would be a load of its own
STEPS_PER_DECADE = 10
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


def options(folder):
    """For pgbench, to have its log in an empty folder."""
    return ["-l", f"--log-prefix={os.path.join(folder, 'log')}", f"--sampling-rate={SAMPLED}"]


def read(folder):
    """(second of the clock, latency in microseconds, tries beyond the first) of what committed."""
    taken = []
    for name in glob.glob(os.path.join(folder, "log.*")):
        with open(name) as file:
            for line in file:
                # client, its transaction, latency, script, time: seconds and microseconds, retries
                fields = line.split()
                if len(fields) < 6 or not fields[2].isdigit():
                    continue  # it has failed, or was skipped
                retries = int(fields[6]) if len(fields) > 6 else 0
                taken.append((int(fields[4]) + int(fields[5]) / 1e6, int(fields[2]), retries))
    return taken


def mean(latencies):
    return round(sum(latencies) / len(latencies), 1) if latencies else 0


def percentile(ordered, share):
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else 0


def buckets(latencies):
    """[from, below, how many], in steps of a tenth of a decade."""
    counts = {}
    for latency in latencies:
        step = math.floor(math.log10(max(latency, 1)) * STEPS_PER_DECADE)
        counts[step] = counts.get(step, 0) + 1
    return [[round(10 ** (step / STEPS_PER_DECADE), 3),
             round(10 ** ((step + 1) / STEPS_PER_DECADE), 3), round(counts[step] / SAMPLED)]
            for step in sorted(counts)]


def timeline(taken, seconds):
    """Whole seconds from the first transaction's end."""
    begin = min(end for end, _, _ in taken)
    of_second = [[] for _ in range(max(1, math.floor(seconds)))]
    for end, latency, retries in taken:
        at = math.floor(end - begin)
        if at < len(of_second):
            of_second[at].append((latency, retries))
    lines = []
    for each in of_second:
        ordered = sorted(latency for latency, _ in each)
        lines.append({
            "committed": round(len(each) / SAMPLED),
            "aborted": round(sum(retries for _, retries in each) / SAMPLED),
            "mean_us": mean(ordered), "p50_us": percentile(ordered, 0.5),
            "p99_us": percentile(ordered, 0.99)})
    return lines


def summary(folder, seconds):
    """Fields of a run; none where nothing was logged."""
    taken = read(folder)
    if not taken:
        return {}
    ordered = sorted(latency for _, latency, _ in taken)
    latency_us = {"mean": mean(ordered),
                  **{name: percentile(ordered, share) for name, share in PERCENTILES.items()}}
    retries = sum(each for _, _, each in taken)
    return {"latency_us": latency_us, "latency_buckets_us": buckets(ordered),
            "timeline": timeline(taken, seconds), "aborted": round(retries / SAMPLED),
            "abort_rate": round(retries / (retries + len(taken)), 6)}
