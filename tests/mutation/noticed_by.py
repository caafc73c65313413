"""Runs that are kept because they notice what few others do: a fault as make mutation prints it,
then, indented, a run: what it is a variant of, and its seed. They are tried first. One that does
not notice its fault any more, since schedules have moved, is no error: others are tried."""

import os

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "noticed_by.txt")
# A fault that took so long to notice is worth a line.
SECONDS_MIN = 6.0
HEAD = """# Faults that few runs notice, and one that does: tried first (noticed_by.py). Written by
# scripts/mutation.py --keep.
"""


def parse(text):
    """{key: "variant seed"}"""
    runs, key = {}, None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" ") == (key is None):
            raise ValueError(f"noticed_by.txt:{number}: a fault, then its run")
        if key is None:
            key = line.strip()
            if key in runs:
                raise ValueError(f"noticed_by.txt:{number}: twice: {key}")
            continue
        variant, seed = line.split()
        runs[key] = f"{variant} {int(seed)}"
        key = None
    if key is not None:
        raise ValueError(f"noticed_by.txt: no run for {key}")
    return runs


def read():
    with open(LIST, encoding="utf-8") as file:
        return parse(file.read())


def read_runs():
    """{(variant, seed)}"""
    return {(run.split()[0], int(run.split()[1])) for run in read().values()}


def worth_keeping(rows, kept):
    """What was slow to notice, and what is quick because its run is kept."""
    return {row["key"]: row["run"] for row in rows if row["noticed"] and
            (row["seconds"] >= SECONDS_MIN or kept.get(row["key"]) == row["run"])}


def text_of(runs):
    return HEAD + "".join(f"\n{key}\n  {run}\n" for key, run in sorted(runs.items()))


def keep(rows):
    runs = worth_keeping(rows, read())
    with open(LIST, "w", encoding="utf-8") as file:
        file.write(text_of(runs))
    print(f"{len(runs)} runs are kept")
    return 0
