#!/usr/bin/env python3
"""make coverage: what the concurrent campaign alone, without any unit test, executes of the
engine's folders: lines and branches of each folder and file, and every line that it does not
reach, or not with all of its branches, but for those in tests/coverage/unreached.txt, which gives
the reason. Exit code 1 if there are others, or if that list names what is reached."""

import argparse
import collections
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/coverage"))

import unreached  # noqa: E402

BUILD = os.path.join(ROOT, "build/coverage")
# Beside the campaign's draws: runs that crowd rare moments (tests/sim/directed.h), bulk loads,
# tables that transactions make and fill, and references out of the engine. As percentages of the campaign's seeds.
OTHERS = (("--directed", 24), ("--loads", 5), ("--fresh", 15), ("--outside", 10), ("--locks", 5))
FOLDERS = ("engine/txn", "engine/storage", "engine/index", "engine/log", "engine/protocols")
# The failing side of a CHECK ends the process.
GCOVR = ("--exclude-throw-branches", "--exclude-unreachable-branches",
         "--exclude-branches-by-pattern", r".*\bD?CHECK\(.*")


def build(jobs):
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["cmake", "--preset", "coverage", "--log-level=WARNING"], cwd=ROOT,
                       check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["nice", "cmake", "--build", "--preset", "coverage", "-j", str(jobs),
                    "--target", "rdmacc_campaign"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)


def run_campaign(flags):
    for counters in glob.glob(os.path.join(BUILD, "**/*.gcda"), recursive=True):
        os.remove(counters)
    program = os.path.join(BUILD, "tests/rdmacc_campaign")
    shares = [[f"--seeds={flags.seeds}"]]
    shares += [[kind, f"--seeds={max(1, flags.seeds * share // 100)}"] for kind, share in OTHERS]
    for share in shares:
        subprocess.run(["nice", program, *share, f"--jobs={flags.jobs}"], cwd=ROOT, check=True)


def measure(jobs):
    report = os.path.join(BUILD, "coverage.json")
    filters = [f"--filter=.*/{folder}/" for folder in FOLDERS]
    subprocess.run(["gcovr", "--root", "../..", *filters, *GCOVR, "--json", report, "-j", str(jobs),
                    "."], check=True, cwd=BUILD)
    with open(report, encoding="utf-8") as file:
        files = json.load(file)["files"]
    if not files:
        sys.exit("coverage: no counters of the engine's folders")
    return files


def function_name(demangled):
    name = demangled.replace("(anonymous namespace)::", "").split("(")[0]
    return re.sub(r"<.*", "", name).split(" ")[-1].removeprefix("rdmacc::")


def lines_of(measured):
    """What is code of a file, each line as `unreached.Line`, reached or not."""
    with open(os.path.join(ROOT, measured["file"]), encoding="utf-8") as file:
        texts = file.read().split("\n")
    starts = sorted((function["lineno"], function_name(function["name"]))
                    for function in measured["functions"])
    for line in measured["lines"]:
        if line.get("gcovr/noncode") or line.get("gcovr/excluded"):
            continue
        number = line["line_number"]
        text = texts[number - 1].strip()
        function = next((name for start, name in reversed(starts) if start <= number), "")
        branches = line["branches"] if unreached.DECIDES.search(text) else []
        untaken = sum(branch["count"] == 0 for branch in branches)
        yield unreached.Line(measured["file"], number, text, function, line["count"] > 0, untaken,
                             len(branches))


def percent(part, whole):
    return f"{part:>5} of {whole:>5} {100 * part / whole if whole else 100:>5.1f} %"


def print_table(lines):
    names = collections.defaultdict(list)
    for line in lines:
        names["in all"].append(line)
        names[next(each for each in FOLDERS if line.path.startswith(each + "/"))].append(line)
        names["  " + line.path.removeprefix("engine/")].append(line)
    order = [name for folder in FOLDERS
             for name in (folder, *sorted(each for each in names
                                          if each.startswith("  " + folder[7:] + "/")))]
    print(f"{'':<42} {'lines reached':>22}  {'branches reached':>22}")
    for name in (*order, "in all"):
        some = names[name]
        all_branches = sum(line.branches_all for line in some)
        print(f"{name:<42} {percent(sum(line.executed for line in some), len(some)):>22}  "
              f"{percent(all_branches - sum(line.branches for line in some), all_branches):>22}")


def print_line(line):
    what = f"{line.branches} of {line.branches_all} branches" if line.executed else "line"
    print(f"not reached: {line.path}:{line.number} ({what}, {line.function}): {line.text[:100]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=60, help="of each protocol")
    parser.add_argument("--judge", action="store_true", help="the last run's counters once more")
    flags = parser.parse_args()
    if not flags.judge:
        build(flags.jobs)
        run_campaign(flags)
    lines = [line for measured in measure(flags.jobs) for line in lines_of(measured)]
    print_table(lines)
    missed = [line for line in lines if not line.executed or line.branches > 0]
    left, stale = unreached.explain(missed, unreached.read_rules(), lines)
    for line in left:
        print_line(line)
    for rule in stale:
        print(f"unreached.txt: reached, or no longer there: {rule.path} | {rule.what}")
    print(f"{len(missed)} lines are not reached, or not with all branches; "
          f"{len(missed) - len(left)} with a reason, {len(left)} without; "
          f"{len(stale)} reasons of nothing")
    return 1 if left or stale else 0


if __name__ == "__main__":
    sys.exit(main())
