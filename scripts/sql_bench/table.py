"""The table that is printed, and the same as JSON."""

import dataclasses
import json
import statistics

HEADINGS = ("line", "heap", "rdmacc", "unit", "ratio", "spread", "target", "verdict", "notes")
ROW = "{:<50} {:>11} {:>11} {:<4} {:>6} {:>11} {:>8}  {:<8} {}"
VERDICTS = ("pass", "short", "refused", "differs", "skipped")
NOTES_MAX = 160


def figure(value):
    """Three digits at least."""
    return f"{value:,.{0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 1 else 3}f}"


def median(values):
    return figure(statistics.median(values)) if values else "-"


def print_heading(group):
    print(f"\n{group}")
    print(ROW.format(*HEADINGS), flush=True)


def print_row(result, at_most):
    ratio = spread = "-"
    if result.ratio is not None:
        ratio = f"{result.ratio:.2f}"
        spread = f"{min(result.ratios):.2f}-{max(result.ratios):.2f}"
    target = f"<= {result.target:g}" if at_most else f"{result.target:g}"
    print(ROW.format(result.name, median(result.heap), median(result.rdmacc), result.unit, ratio,
                     spread, target, result.verdict,
                     "; ".join(result.notes).replace("\n", " ")[:NOTES_MAX]).rstrip(), flush=True)


def print_summary(results):
    counts = {verdict: sum(result.verdict == verdict for result in results)
              for verdict in VERDICTS}
    print(f"\n{len(results)} lines: " + ", ".join(f"{count} {verdict}" for verdict, count
                                                 in counts.items() if count or verdict == "pass"))


def write_json(path, flags, results):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"durability": flags.durability, "clients": flags.clients, "rows": flags.rows,
                   "seconds": flags.seconds, "rounds": flags.rounds,
                   "lines": [dataclasses.asdict(result) for result in results]}, file, indent=1)
        file.write("\n")
