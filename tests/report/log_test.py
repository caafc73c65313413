#!/usr/bin/env python3
"""What scripts/pgbench_log.py makes of a log that pgbench has written."""

import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import pgbench_log

# client, its transaction, latency in microseconds, script, seconds and microseconds, retries
LOG = """\
0 1 100 0 1000 500000 0
0 2 failed 0 1000 600000 3
1 1 300 1 1000 900000 1
1 2 200 1 1001 600000 0
0 3 12000 0 1002 900000 1
"""


def summarized(log):
    with tempfile.TemporaryDirectory() as folder:
        if log is not None:
            with open(os.path.join(folder, "log.17"), "w") as file:
                file.write(log)
        return pgbench_log.summary(folder, 2)


def main():
    run = summarized(LOG)
    tests = {
        "latencies": run["latency_us"] == {"mean": 3150.0, "p50": 200, "p90": 12000, "p99": 12000,
                                           "p999": 12000},
        "what has failed has no latency": sum(count for _, _, count in run["latency_buckets_us"]) == 40,
        "buckets are in order and hold their latencies": [
            any(least <= latency < below for least, below, _ in run["latency_buckets_us"])
            for latency in (100, 200, 300, 12000)] == [True] * 4
            and run["latency_buckets_us"] == sorted(run["latency_buckets_us"]),
        "retries": run["aborted"] == 20 and run["abort_rate"] == 0.333333,
        "whole seconds alone": [second["committed"] for second in run["timeline"]] == [20, 10],
        "a second's latencies": run["timeline"][0]["mean_us"] == 200.0
            and run["timeline"][0]["p99_us"] == 300,
        "a second without any": summarized("0 1 100 0 1000 0\n0 2 100 0 1001 900000\n")
            ["timeline"][0]["committed"] == 10,
        "no log": summarized(None) == {},
        "an empty log": summarized("") == {},
    }
    for name, passed in tests.items():
        print(f"{'ok' if passed else 'not ok'} - {name}")
    failed = list(tests.values()).count(False)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
