#!/usr/bin/env python3
"""make mutation: plants small faults in the engine's folders, all behind one switch, builds them
once, and runs the concurrent campaign with each until a run fails. Prints what noticed how many,
and every fault that nothing noticed. A fault that no run can notice stands in
tests/mutation/survivors.txt with the reason. Exit code 1 if less than 95 % of the others are
noticed, or if that list says what is no longer so. Runs that notice what few others do stand in
tests/mutation/noticed_by.txt, and are tried first."""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/mutation"))

import faults  # noqa: E402
import mutator  # noqa: E402
import noticed_by  # noqa: E402
import survivors  # noqa: E402

WORK = os.path.join(ROOT, "build/mutation")
PLANTED = os.path.join(WORK, "planted.json")
RESULTS = os.path.join(WORK, "results.json")
PROGRAM = os.path.join(WORK, "build/tests/rdmacc_mutants")
COPIED = ("rdma", "engine", "tests", "pg_rdmacc/server")
HEADER = '#include "tests/mutation/planted.h"\n#line 1\n'
BUILDS_MAX = 8
MEMORY_MAX = 6 << 30
RATE_MIN = 0.95
# A run with a fault may take so many events as this times those without, before it is a hang.
EVENTS_FACTOR, EVENTS_MORE = 4, 300_000
# A run that takes more without a fault is not repeated: with one it would have no time to end.
EVENTS_MAX = 15_000_000
# Of the time for a fault, what one that stands in the list with a reason gets.
LISTED_SHARE = 0.1
ROWS_PER_REPORT = 20


def write_if_changed(path, text):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copied_files():
    output = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "CMakeLists.txt",
                             *COPIED], cwd=ROOT, check=True, capture_output=True).stdout
    return [path for path in output.decode().split("\0")
            if path and os.path.isfile(os.path.join(ROOT, path))]


def plant_all(numbered):
    """The tree with the faults, under build/mutation/source."""
    by_path = collections.defaultdict(list)
    for number, fault in numbered:
        by_path[fault.path].append((number, fault))
    wanted = set()
    for path in copied_files():
        try:
            text = faults.read(ROOT, path)
        except UnicodeDecodeError:
            continue
        if path in by_path:
            text = HEADER + mutator.plant(text, by_path[path])
        target = os.path.join(WORK, "source", path)
        write_if_changed(target, text)
        wanted.add(target)
    for folder, _, names in os.walk(os.path.join(WORK, "source")):
        for name in names:
            if os.path.join(folder, name) not in wanted:
                os.remove(os.path.join(folder, name))


def number_all(chosen):
    """A fault keeps its number, so that a change of another one compiles nothing else again."""
    path = os.path.join(WORK, "numbers.json")
    numbers = json.load(open(path)) if os.path.exists(path) else {}
    wanted = {fault.key for fault in chosen}
    numbers = {key: number for key, number in numbers.items() if key in wanted}
    free = (number for number in itertools.count(1) if number not in numbers.values())
    for fault in chosen:
        if fault.key not in numbers:
            numbers[fault.key] = next(free)
    write_if_changed(path, json.dumps(numbers, indent=1))
    return [(numbers[fault.key], fault) for fault in chosen]


def compile_once(jobs):
    build = os.path.join(WORK, "build")
    configure = ["cmake", "-S", os.path.join(WORK, "source"), "-B", build, "-G", "Ninja",
                 "-DRDMACC_MUTATION=ON", "-DRDMACC_PG=OFF", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                 "-DCMAKE_CXX_FLAGS=-w -g0", "--log-level=WARNING"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    command = ["nice", "cmake", "--build", build, "-j", str(jobs), "--target", "rdmacc_mutants",
               "--", "-k", "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def refused_by(output, numbered):
    """The faults on the lines that a compiler complains of."""
    lines = set(re.findall(r"source/(engine/[\w/.]+):(\d+):\d+: error", output))
    refused = set()
    for path, line in lines:
        for _, fault in numbered:
            if fault.path == path and fault.line <= int(line) <= fault.last_line:
                refused.add(fault.key)
    return refused


def build(flags):
    """Faults that do not compile are left out, and the rest is built."""
    known = os.path.join(WORK, "refused.json")
    refused = set(json.load(open(known))) if os.path.exists(known) else set()
    for _ in range(BUILDS_MAX):
        numbered = number_all(faults.chosen(ROOT, flags.share, faults.SEED, refused))
        plant_all(numbered)
        built, output = compile_once(flags.jobs)
        if built:
            return note_planted(numbered)
        more = refused_by(output, numbered)
        if not more - refused:
            break
        refused |= more
        write_if_changed(known, json.dumps(sorted(refused), indent=1))
    sys.exit(output[-4000:] + "\nmutation: the faults do not build")


def note_planted(numbered):
    """What the program has in it: a row for each fault, for this run and for --built."""
    rows = {number: {"number": number, "path": fault.path, "line": fault.line, "kind": fault.kind,
                     "key": fault.key} for number, fault in reversed(numbered)}
    rows = sorted(rows.values(), key=lambda row: row["number"])
    with open(PLANTED, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    return rows


# ---- Running

def reach(flags):
    """What each run comes to without any fault, and how often."""
    def part(wanted):
        command = ["nice", PROGRAM, "reach", f"--events-max={EVENTS_MAX}", *wanted]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    parts = [[f"--first={first + 1}", f"--step={flags.jobs}", f"--seeds={flags.seeds}"]
             for first in range(flags.jobs)]
    for variant, seed in sorted(noticed_by.read_runs()):
        if seed > flags.seeds:
            parts.append([f"--first={seed}", f"--seeds={seed}", f"--protocols={variant}"])
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        lines = [json.loads(line) for output in pool.map(part, parts)
                 for line in output.splitlines()]
    # What a run that was given up has come to says nothing.
    lines = [line for line in lines if line["events"] < EVENTS_MAX]
    for line in lines:
        if line["problem"]:
            print(f"left out, fails without any fault: {line['variant']} {line['seed']}: "
                  + line["problem"])
    flags.left_out = sum(bool(line["problem"]) for line in lines)
    return [line for line in lines if not line["problem"]]


def in_order(number, lines, known):
    """The runs that come to a fault: what is `known` to have noticed it, then all kinds of runs
    and all protocols in turns, each beginning with what comes to it most often for its time."""
    groups = collections.defaultdict(list)
    for line in lines:
        hits = line["reached"].get(str(number), 0)
        if hits:
            score = hits ** 0.5 / line["cpu_s"]
            groups[line["kind"], line["variant"]].append((score, line))
    turns = []
    for group in groups.values():
        group.sort(key=lambda each: -each[0])
        turns += [(turn, -score, line) for turn, (score, line) in enumerate(group)]
    turns.sort(key=lambda each: each[:2])
    runs = [line for _, _, line in turns]
    return sorted(runs, key=lambda line: f"{line['variant']} {line['seed']}" not in known)


KINDS = (("hangs", "hang"), ("lock is left", "lock left"), ("share is left", "lock left"),
         ("cycle", "cycle"), ("not serializable", "cycle"), ("missing", "lost row"),
         ("corrupt:", "wrong result"))


def kind_of(problem):
    lower = problem.lower()
    return next((kind for word, kind in KINDS if word in lower), "error")


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def try_fault(cpu_s, number, runs):
    """(what noticed it, where, the problem, seconds), or None in place of what noticed it."""
    text = "".join(f"{line['variant']} {line['seed']} "
                   f"{line['events'] * EVENTS_FACTOR + EVENTS_MORE}\n" for line in runs)
    begin = time.monotonic()
    command = ["nice", PROGRAM, "run", f"--fault={number}", f"--cpu-s={cpu_s}"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace",
                          preexec_fn=limit_memory)
    seconds = time.monotonic() - begin
    last = done.stdout.splitlines()[-1] if done.stdout else "{}"
    line = json.loads(last)
    if line.get("problem"):
        return kind_of(line["problem"]), line["run"], line["problem"], seconds
    if done.returncode == 0:
        return None, "", "", seconds
    said = done.stderr.strip().splitlines()
    if -done.returncode == 26:  # SIGVTALRM
        return "hang", line.get("begins", ""), "no end", seconds
    kind = "check" if said and "CHECK" in said[-1] else "crash"
    return kind, line.get("begins", ""), said[-1] if said else f"ended {done.returncode}", seconds


def try_all(flags, planted, reached):
    """The rows, with what noticed each."""
    known = {row["key"]: row for row in json.load(open(RESULTS))} if os.path.exists(RESULTS) else {}
    listed = {key for key, (name, _) in survivors.read_reasons().items() if name != "missing"}
    kept = noticed_by.read()

    def one(row):
        key = row["key"]
        runs = in_order(row["number"], reached, {kept.get(key), known.get(key, {}).get("run")})
        cpu_s = flags.cpu_s * (LISTED_SHARE if key in listed else 1)
        kind, run, problem, seconds = (try_fault(cpu_s, row["number"], runs) if runs
                                       else (None, "", "", 0.0))
        return {**row, "noticed": kind, "run": run, "problem": problem,
                "seconds": round(seconds, 2), "runs": len(runs)}

    begin = time.monotonic()
    wanted = [row for row in planted if not flags.only or re.search(flags.only, row["key"])]
    rows = []
    if flags.again:
        settled = {key for key, row in known.items() if row["noticed"] or key in listed}
        rows = [known[row["key"]] for row in wanted if row["key"] in settled]
        wanted = [row for row in wanted if row["key"] not in settled]
    count = len(rows) + len(wanted)
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        for row in pool.map(one, wanted):
            rows.append(row)
            if len(rows) % ROWS_PER_REPORT == 0 or len(rows) == count:
                with open(RESULTS, "w", encoding="utf-8") as file:
                    json.dump(rows, file, indent=1)
                print(f"{len(rows)} of {count} faults in {time.monotonic() - begin:.0f} s",
                      flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=60, help="of each protocol")
    parser.add_argument("--cpu-s", type=float, default=20, help="for each fault")
    parser.add_argument("--share", type=float, default=faults.SHARE, help="of all candidates")
    parser.add_argument("--only", default="", help="faults whose key this pattern matches")
    parser.add_argument("--built", action="store_true", help="the faults of the last build")
    parser.add_argument("--again", action="store_true",
                        help="of these, those that were neither noticed nor have a reason")
    parser.add_argument("--judge", action="store_true", help="the last run's results once more")
    parser.add_argument("--keep", action="store_true",
                        help="the last run's results: writes tests/mutation/noticed_by.txt")
    flags = parser.parse_args()
    if flags.keep:
        return noticed_by.keep(json.load(open(RESULTS)))
    if flags.judge:
        return survivors.judge(json.load(open(RESULTS)), whole=True)
    begin = time.monotonic()
    planted = json.load(open(PLANTED)) if flags.built or flags.again else build(flags)
    built = time.monotonic()
    reached = reach(flags)
    looked = time.monotonic()
    rows = try_all(flags, planted, reached)
    print(f"build {built - begin:.0f} s, {len(reached)} runs without a fault "
          f"{looked - built:.0f} s, {len(rows)} faults {time.monotonic() - looked:.0f} s")
    return survivors.judge(rows, whole=not flags.only) or int(flags.left_out > 0)


if __name__ == "__main__":
    sys.exit(main())
