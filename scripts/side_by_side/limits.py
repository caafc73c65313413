"""What rdmacc tables refuse, and says docs/limitations.md: (SQLSTATE, what the message has). A refused statement
is left out on both sides, with its transaction block, and counted."""

import re

REFUSED = (
    ("0A000", "cannot be part of"),  # types without an equality that hashes
    ("0A000", "cannot drop a primary key and add the same again"),
    ("0A000", "cannot write rows of rdmacc tables and of other tables"),  # calvin
    ("54000", "^index row size"),  # of long values that a heap's index compresses
)
# Of CALVIN alone: a transaction that scans some 300,000 rows, or has more than a megabyte.
TOO_LARGE = "53200"
# An index that an open cursor uses, or does not use: plans are not compared.
IN_USE = "55006"
# With the nodes' own work, in sessions that are alone.
CONFLICTS = ("40001", "40P01")


def refused(outcome, protocol):
    if protocol == "calvin" and outcome.state == TOO_LARGE:
        return True
    return any(outcome.state == state and re.search(pattern, outcome.message) for state, pattern in REFUSED)
