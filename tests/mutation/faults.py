"""Which faults are planted in this tree: where, and where not, and those written by hand."""

import glob
import os
import re

import mutator
import named

FOLDERS = ("txn", "storage", "index", "log", "protocols")
SEED = 11
SHARE = 0.026  # of all candidates, about

# Not what transactions see of each other: statistics, monitoring, and what reads it.
SKIPPED_FILES = ("engine/txn/transaction/worker_stats.*", "engine/storage/owner/table_size.cc",
                 "engine/txn/rule/stage.cc", "engine/storage/wire/lock_holds.*", "engine/txn/transaction/txn_observer.h",
                 "engine/log/in_doubt_list.cc")
# The history is what the campaign judges, not what it runs. A check of a message that no node
# sends, and of registered memory that is used up, is the fuzzers' and the unit tests' (tests/fuzz);
# texts, counters, reserved room and prefetches are not what a fault of concurrency is.
SKIPPED_LINES = re.compile(
    r"history_\.|\.history->|observer|std::to_string|stats\b|statistics|counters_? ?[.+]|prefetch|reserve\("
    r"|_waits_|requests_|splits_|\breads_\+\+|Code::k(Corrupt|InvalidArgument|TooLarge)"
    r"|out_of_registered_memory|at_end\(\)|\b(in|reader|in_)\.ok\(\)|corrupt_\w+\(\)|== nullptr"
    r"|\b(DCHECK|CHECK|static_assert)\(")


def files(root):
    return sorted(os.path.relpath(path, root)
                  for folder in FOLDERS for ending in ("cc", "h")
                  for path in glob.glob(os.path.join(root, "engine", folder, "**", "*." + ending),
                                        recursive=True))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def skips(line):
    return SKIPPED_LINES.search(line) is not None


def chosen(root, share=SHARE, seed=SEED, refused=()):
    """In a fixed order. `refused`: keys of what a compiler does not accept."""
    candidates, by_hand = [], []
    for path in files(root):
        text = read(root, path)
        for name, original, mutated in named.FAULTS.get(path, ()):
            by_hand.append(mutator.named_candidate(path, text, name, original, mutated))
        if not mutator.matches(path, SKIPPED_FILES):
            candidates += mutator.Finder(path, text, skips).candidates()
    free = [each for each in candidates if each.key not in refused and not any(
        other.path == each.path and other.begin < each.end and each.begin < other.end
        for other in by_hand)]
    both = mutator.choose(free, seed, share) + by_hand
    return sorted(both, key=lambda each: (each.path, each.begin))
