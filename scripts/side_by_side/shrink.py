"""The fewest statements that still show a difference, found by leaving some out as long as it stays."""

import time

SECONDS_MAX = 90


def shrink(items, repeats, seconds=SECONDS_MAX):
    """`repeats(items)` gives the items up to the difference, or None if there is none."""
    deadline = time.monotonic() + seconds
    size = max(1, len(items) // 2)
    while True:
        place, left_out = 0, False
        while place < len(items) and time.monotonic() < deadline:
            shown = repeats(items[:place] + items[place + size:])
            if shown is None:
                place += size
            else:
                items, left_out = shown, True
        if time.monotonic() >= deadline or (size == 1 and not left_out):
            return items
        size = max(1, size // 2)
