"""Whether two sides said the same to a statement. Left open by SQL, and so no difference: the order of rows
beyond ORDER BY, and which of several errors is met first where rows come in any order."""

import collections
import re

NUMERIC, FLOATS, COPIED = 1700, (700, 701), 0  # types; what COPY prints has none
NUMBER = re.compile(r"-?\d+(\.\d+)?")
# Classes of errors that one row of many may raise before another row raises its own.
OF_ROWS = ("21", "22", "23", "42", "44", "54", "P0")
SHOWN = 6


def plain(value, oid):
    """Equal values that print otherwise are one; of COPY's lines in each column that could be a number."""
    if oid == COPIED and value is not None and "\t" in value:
        return "\t".join(plain(each, COPIED) for each in value.split("\t"))
    if value is None or oid not in (NUMERIC, *FLOATS, COPIED):
        return value
    if oid == NUMERIC or (oid == COPIED and NUMBER.fullmatch(value)):
        value = value.rstrip("0").rstrip(".") if "." in value else value
    return "0" if value == "-0" else value


def comparable(outcome):
    oids = [oid for _, oid in outcome.columns] or [COPIED] * 2
    return [tuple(plain(value, oid) for value, oid in zip(row, oids)) for row in outcome.rows]


def difference_of_rows(ours, theirs):
    """Of two lists, as sets that count."""
    more = collections.Counter(ours) - collections.Counter(theirs)
    less = collections.Counter(theirs) - collections.Counter(ours)
    if not more and not less:
        return None

    def lines(counter):
        found = [f"    {row}" + (f" ({count} times)" if count > 1 else "") for row, count in counter.items()]
        return "\n".join(sorted(found)[:SHOWN] + (["    ..."] if len(found) > SHOWN else []))

    return (f"rdmacc alone, {sum(more.values())} rows:\n{lines(more)}\n"
            f"heap alone, {sum(less.values())} rows:\n{lines(less)}")


def difference(statement, ours, theirs):
    """(kind, text), or None: `ours` is rdmacc's outcome, `theirs` heap's."""
    if ours.state or theirs.state:
        if ours.state == theirs.state:
            return None
        both = ours.state and theirs.state
        if both and not statement.settled and {ours.state[:2], theirs.state[:2]} <= set(OF_ROWS):
            return None
        return "state", (f"rdmacc: {ours.state or 'no error'} {ours.message}\n"
                         f"heap: {theirs.state or 'no error'} {theirs.message}")
    if ours.tag != theirs.tag:
        return "tag", f"rdmacc: {ours.tag}\nheap: {theirs.tag}"
    if (ours.rows is None) != (theirs.rows is None) or \
            [name for name, _ in ours.columns] != [name for name, _ in theirs.columns]:
        return "columns", f"rdmacc: {ours.columns}\nheap: {theirs.columns}"
    if ours.rows is None:
        return None
    ours, theirs = comparable(ours), comparable(theirs)
    text = difference_of_rows(ours, theirs)
    if text is not None:
        return "rows", text
    for place, (one, other) in enumerate(zip(ours, theirs), 1):
        if one[:statement.order] != other[:statement.order]:
            return "order", f"row {place} in order\nrdmacc: {one}\nheap: {other}"
    return None
