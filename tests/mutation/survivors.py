"""What a run of all faults comes to: how many were noticed, and by what; which were not, and
whether the list of survivors gives the reason."""

import collections
import os

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "survivors.txt")
RATE_MIN = 0.95
# Reasons begin with one of these. Only the last means that a workload is missing.
CLASSES = ("equivalent", "speed", "unreachable", "missing")


def parse(text):
    """{key: (class, reason)}: a key on a line of its own, then its reason, indented."""
    reasons, key = {}, None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            if key is not None and key not in reasons:
                raise ValueError(f"survivors.txt:{number}: no reason for {key}")
            key = line.strip()
            if key in reasons:
                raise ValueError(f"survivors.txt:{number}: twice: {key}")
            continue
        if key is None:
            raise ValueError(f"survivors.txt:{number}: a reason of nothing")
        if key in reasons:
            reasons[key] = (reasons[key][0], reasons[key][1] + " " + line.strip())
            continue
        name, _, reason = line.strip().partition(": ")
        if name not in CLASSES or not reason:
            raise ValueError(f"survivors.txt:{number}: begins with none of {', '.join(CLASSES)}")
        reasons[key] = (name, reason)
    if key is not None and key not in reasons:
        raise ValueError(f"survivors.txt: no reason for {key}")
    return reasons


def read_reasons():
    with open(LIST, encoding="utf-8") as file:
        return parse(file.read())


def folder_of(path):
    return "/".join(path.split("/")[:2])


def tally(rows, reasons):
    """{folder: Counter}; a fault that was noticed is "noticed", another its class or "unlisted"."""
    tallies = collections.defaultdict(collections.Counter)
    for row in rows:
        outcome = "noticed" if row["noticed"] else reasons.get(row["key"], ("unlisted",))[0]
        for folder in (folder_of(row["path"]), "all"):
            tallies[folder][outcome] += 1
    return tallies


def rate_of(counted):
    """Of what can be noticed."""
    can = counted["noticed"] + counted["missing"] + counted["unlisted"]
    return counted["noticed"] / can if can else 1.0


def stale(rows, reasons):
    alive = {row["key"] for row in rows if not row["noticed"]}
    return sorted(key for key in reasons if key not in alive)


def print_tallies(tallies):
    print(f"{'folder':<20} {'planted':>7} {'noticed':>7} {'no effect':>9} {'speed':>6} "
          f"{'unreachable':>11} {'missed':>6}  of what can be noticed")
    for folder in sorted(tallies, key=lambda name: (name == "all", name)):
        c = tallies[folder]
        print(f"{folder:<20} {sum(c.values()):>7} {c['noticed']:>7} {c['equivalent']:>9} "
              f"{c['speed']:>6} {c['unreachable']:>11} {c['missing'] + c['unlisted']:>6}  "
              f"{100 * rate_of(c):.1f} %")


def judge(rows, whole):
    """Prints all that; the exit code. `whole`: all faults were run, not some."""
    reasons = read_reasons()
    for row in rows:
        if not row["noticed"] and reasons.get(row["key"], ("unlisted",))[0] in ("unlisted",
                                                                               "missing"):
            print(f"not noticed: {row['path']}:{row['line']} ({row['runs']} runs come to it)\n"
                  f"    {row['key']}")
    kinds = collections.Counter(row["noticed"] for row in rows if row["noticed"])
    print("noticed by: " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    tallies = tally(rows, reasons)
    print_tallies(tallies)
    rate = rate_of(tallies["all"])
    gone = stale(rows, reasons) if whole else []
    for key in gone:
        print(f"survivors.txt: noticed, or no longer planted: {key}")
    print(f"{100 * rate:.1f} % of what can be noticed is noticed; {100 * RATE_MIN:.0f} % are wanted")
    return 1 if rate < RATE_MIN or gone else 0
