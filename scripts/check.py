#!/usr/bin/env python3
"""make check: builds and runs every test, and counts them. Each part runs in a process of its own
with a time limit; parts that need little of the processor run beside each other. The last line is
"N passed, N failed" over all parts; a part that breaks down counts as one failure."""

import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.path.join(ROOT, "build/check")
COLOURS = sys.stdout.isatty()
LINES_OF_A_FAILURE = 60
# Where a part says what failed, which may be far above the end of its output.
POINTS_AT_FAILURE = re.compile(r"Failure$|^\[  FAILED  \]|^not ok|CHECK failed|Sanitizer|PANIC|"
                               r"\.\.\. (?:FAILED|failed)|suite-ended \S+ [1-9]|"
                               r"^\w[\w.]*(?:Error|Expired|Failure|Unmet): ")
LINES_BESIDE = 8
# A difference from what a regression test should print.
DIFFERENCE = re.compile(r"^@@ |^[+-](?![+-]{2})")
LINES_OF_THE_END = 12
# Unit and simulator tests, which run under the sanitizers, too: slowly, so with fewer seeds.
SANITIZED_SEEDS = {"SEEDS_PERCENT": "6"}
HALF_LIMIT_S = 900
SANITIZED = ("cluster_test", "engine_test", "index_test", "log_test",
             "node_process_test", "sim_test", "stats_test", "storage_test", "workloads_test")
# These run the code of all libraries that the others test; make soak sanitizes all of them.
SANITIZED_IN_CHECK = ("engine_test", "node_process_test", "sim_test", "stats_test", "storage_test")
LONGEST = "sim_test"
# About half of their time, which the release build takes for them. Of sim_test: every code once
# more, seeds of bugs, tests of the tests, and a first seed in which transactions wait for each other
# for a minute. Of engine_test: what waits for nodes or fills them, and owners that are asked by
# protocols that serve as others do.
NOT_SANITIZED = {
    "sim_test": "*HybridCode.PredicatesHold*:Campaign.SeedsThatFailedOnce:OutsideFaults.*:"
                "*EarlyLocks.KeepHistoriesSerializable/woundwait",
    "engine_test": "LostNodeCommit.IsWhole*:LoadsOfSmallNodes.*:OrderedOutcomeTest.MayHappenLater*:"
                   + ":".join(f"Protocols/*/{protocol}_511" for protocol in (
                       "waitdie", "woundwait", "tictoc", "maat", "cicada", "drtm", "timestamp"))}
WAITING = ("06_monitoring.py", "10_network.py", "14_mixed.py")

running = set()  # processes of parts under way, each the leader of its group

GTEST_PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.M)
GTEST_FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below", re.M)
CAMPAIGN = re.compile(r"^(\d+) protocols passed, (\d+) failed$", re.M)
COUNTED = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)


class Part:
    def __init__(self, name, command, count, limit_s, environment=None):
        self.name = name
        self.command = command
        self.count = count  # output -> (passed, failed)
        self.limit_s = limit_s
        self.environment = {**os.environ, **(environment or {})}
        self.passed = self.failed = 0
        self.seconds = 0.0
        self.processor_seconds = 0.0  # of it and of the children that it has waited for
        self.output = ""

    def run(self):
        begin = time.monotonic()
        log = os.path.join(LOGS, re.sub(r"\W+", "_", self.name) + ".log")
        with open(log, "w+b") as file:
            process = subprocess.Popen(self.command, cwd=ROOT, stdout=file,
                                       stderr=subprocess.STDOUT, env=self.environment,
                                       start_new_session=True)
            running.add(process.pid)
            status = self._wait(process, self.limit_s)
            if status is None:
                os.killpg(process.pid, signal.SIGTERM)
                if self._wait(process, 10) is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    self._wait(process, 10)
                status = f"no end within {self.limit_s} s"
            running.discard(process.pid)
            file.seek(0)
            self.output = file.read().decode(errors="replace")
        self.seconds = time.monotonic() - begin
        self.passed, self.failed = self.count(self.output)
        if status != 0 and self.failed == 0:
            self.failed = 1
            self.output += f"\n{self.name}: ended with {status}"
        report(self)
        return self

    def _wait(self, process, limit_s):
        """Its exit status; None if it does not end within the limit."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                process.returncode = os.waitstatus_to_exitcode(status)
                self.processor_seconds = usage.ru_utime + usage.ru_stime
                return process.returncode
            time.sleep(0.05)
        return None


def colour(text, code):
    return f"\033[{code}m{text}\033[0m" if COLOURS else text


def report(part):
    mark = colour("FAILED", 31) if part.failed else colour("ok", 32)
    print(f"  {part.name:<34} {part.passed:>5} passed {part.failed:>3} failed "
          f"{part.seconds:>6.1f} s {part.processor_seconds:>7.1f} s of a processor  {mark}", flush=True)
    for line in part.output.splitlines():
        if line.startswith("skipped: "):
            print("    " + line, flush=True)
    if part.failed:
        print("\n".join("    " + line for line in lines_of_failure(part.output)), flush=True)


def lines_of_failure(output):
    """The lines around what failed, and the last ones: at most two times LINES_OF_A_FAILURE."""
    lines = output.splitlines()
    end = max(0, len(lines) - LINES_OF_A_FAILURE)
    near = sorted({number for at, line in enumerate(lines[:end]) if POINTS_AT_FAILURE.search(line)
                   for number in range(max(0, at - LINES_BESIDE), min(end, at + LINES_BESIDE))})
    near = near[:LINES_OF_A_FAILURE]
    return [lines[number] for number in near] + (["..."] if near else []) + lines[end:]


def end_of_failure(output):
    """What failed, in a few lines: CI may keep no more than the end of what the check prints."""
    lines = output.splitlines()
    named = [line for line in lines if POINTS_AT_FAILURE.search(line) or DIFFERENCE.search(line)]
    return (named or lines[-LINES_OF_THE_END:])[:LINES_OF_THE_END]


def count_nothing(_):
    return 0, 0


def count_gtest(output):
    passed = GTEST_PASSED.search(output)
    failed = GTEST_FAILED.search(output)
    return int(passed.group(1)) if passed else 0, int(failed.group(1)) if failed else 0


def count_counted(output):
    found = COUNTED.findall(output)
    return (int(found[-1][0]), int(found[-1][1])) if found else (0, 1)


def count_campaign(output):
    found = CAMPAIGN.search(output)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 1)


def campaign_part(preset, *flags, limit_s=600, environment=None):
    program = os.path.join(ROOT, "build", preset, "tests", "rdmacc_campaign")
    return Part(f"campaign {preset}", [program, *flags], count_campaign, limit_s, environment)


def gtest_parts(preset, label="", names=None, limit_s=600, environment=None):
    folder = os.path.join(ROOT, "build", preset, "tests")
    names = names or sorted(name for name in os.listdir(folder) if name.endswith("_test"))
    return [Part(label + name, [os.path.join(folder, name)], count_gtest, limit_s, environment)
            for name in names]


def python_part(name, *command, limit_s=600):
    return Part(name, [sys.executable, *command], count_counted, limit_s)


def build(preset, jobs, limit_s, targets=()):
    if not os.path.exists(os.path.join(ROOT, "build", preset, "build.ninja")):
        Part(f"configure {preset}", ["cmake", "--preset", preset], count_nothing, 120).run()
    command = ["nice", "cmake", "--build", "--preset", preset, "-j", str(jobs)]
    if targets:
        command += ["--target", *targets]
    return Part(f"build {preset}", command, count_nothing, limit_s).run()


def in_turn(parts):
    return [part.run() for part in parts]


def at_a_time(count, parts):
    """In order, and so many of them run: such as wait for a server or a clock most of their time, or
    what is long."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(Part.run, parts))


def halves(part):
    """A GoogleTest program as two, each with a limit for two that run beside servers' tests."""
    return [Part(f"{part.name}, {index + 1} of 2", part.command, part.count, HALF_LIMIT_S,
                 {**part.environment, "GTEST_TOTAL_SHARDS": "2", "GTEST_SHARD_INDEX": str(index)})
            for index in range(2)]


def is_longest(part):
    return part.name.endswith(LONGEST)


def release_tests():
    """One after the other: on a slow machine the longest, whole, would meet its limit."""
    parts = gtest_parts("release")
    return [each for part in parts for each in (halves(part) if is_longest(part) else [part])]


def fuzz_parts():
    return [python_part("fuzz", "scripts/fuzz.py", limit_s=1500)]


def delay_parts():
    return [python_part("delayed verbs", "scripts/delay_storm.py", "--seconds=25", "--jobs=2",
                        limit_s=320)]


def verbs_parts():
    return [python_part("verbs", "scripts/check_verbs.py", limit_s=1000)]


def tap_part(name):
    return python_part("tap " + name[:-3], os.path.join("tests/tap", name), limit_s=480)


def server_parts():
    taps = sorted(name for name in os.listdir(os.path.join(ROOT, "tests/tap"))
                  if re.match(r"\d+_.*\.py$", name) and name not in WAITING)
    return [python_part("regress", "scripts/run_regress.py", "regress"),
            python_part("power layer", "tests/power/layer_test.py", limit_s=60),
            *map(tap_part, taps),
            python_part("pages", "tests/report/page_test.py", limit_s=120)]


def waiting_parts():
    """They wait most of the time: sessions for each other, others for a network or a server."""
    return [python_part("isolation", "scripts/run_regress.py", "isolation", limit_s=1200),
            *map(tap_part, WAITING),
            python_part("clients", "scripts/check_clients.py", "--share", limit_s=400),
            python_part("differential", "scripts/differential.py", "--seeds=30", limit_s=400),
            python_part("pg_suite", "scripts/pg_suite.py", "--share", limit_s=400)]


def sanitized_parts(jobs):
    """The longest one last, its halves at a time: the others' tests have ended by then."""
    done = [build("asan", jobs, 2400, SANITIZED_IN_CHECK)]
    if done[0].failed:
        return done
    parts = gtest_parts("asan", "sanitized ", SANITIZED_IN_CHECK, environment=SANITIZED_SEEDS)
    for part in parts:
        left_out = NOT_SANITIZED.get(part.name.removeprefix("sanitized "))
        if left_out:
            part.command.append("--gtest_filter=-" + left_out)
    done += in_turn([part for part in parts if not is_longest(part)])
    for part in filter(is_longest, parts):
        done += at_a_time(2, halves(part))
    return done


def run_everything(jobs):
    done = in_turn([python_part("lint", "tests/lint/tidy.py", limit_s=60),
                    python_part("mutator", "tests/mutation/mutator_test.py", limit_s=60),
                    python_part("pg_suite order", "tests/pg_suite/order_test.py", limit_s=60),
                    python_part("pgbench's log", "tests/report/log_test.py", limit_s=60)])
    done.append(build("release", jobs, 1800))
    if done[-1].failed:
        return done
    # The sanitized build is long and waits for nothing.
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        waiting = pool.submit(lambda: in_turn(waiting_parts()))
        beside = pool.submit(lambda: sanitized_parts(jobs) + in_turn(fuzz_parts() + delay_parts()))
        done += in_turn(release_tests())
        done += in_turn([campaign_part("release", "--check-share", f"--jobs={jobs}")])
        done += in_turn([python_part("faults", "scripts/faults.py", "--share", f"--jobs={jobs}"),
                         python_part("guide", "tests/guide/follow.py", limit_s=120)])
        done += at_a_time(3, server_parts())
        done += waiting.result() + beside.result()
    # The guest emulates two processors, and wants ours.
    return done + in_turn(verbs_parts())


def end_all(signal_number, _):
    """An interrupted check leaves no build and no server behind."""
    for group in list(running):
        try:
            os.killpg(group, signal.SIGTERM)
        except ProcessLookupError:
            pass
    os._exit(128 + signal_number)


def main():
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, end_all)
    parser = argparse.ArgumentParser(description="build and run every test")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    os.makedirs(LOGS, exist_ok=True)
    begin = time.monotonic()
    done = run_everything(flags.jobs)
    passed = sum(part.passed for part in done)
    failed = sum(part.failed for part in done)
    print(f"{time.monotonic() - begin:.0f} seconds; logs are in build/check")
    for part in done:
        if part.failed:
            print(colour(f"failed: {part.name}", 31))
            print("\n".join("    " + line for line in end_of_failure(part.output)))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
