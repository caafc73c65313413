"""Whether two answers to one statement differ in nothing but an order that SQL does not promise: rows
of a query without an ORDER BY of its own, rows that one leaves equal, messages about rows, and what an
aggregate like string_agg gathers of its rows without one."""

import collections
import re

ORDER_BY = re.compile(r"\border\s+by\b", re.I)
ORDER_ENDS = re.compile(r"\b(limit|offset|fetch|for\s+(update|no|share|key)|union|except|intersect)\b",
                        re.I)
# Literals and comments, in which words and parentheses mean nothing.
QUOTED = re.compile(r"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.S)
KEY_WORDS = re.compile(r"\s+(asc|desc|nulls\s+(first|last)|using\s+\S+|collate\s+\S+)\b.*$", re.I)
# Aggregates whose results show the order of rows, beside those that the test itself has made.
GATHERS = {"string_agg", "array_agg", "xmlagg", "json_agg", "jsonb_agg", "json_object_agg",
           "jsonb_object_agg"}
MADE_AGGREGATE = re.compile(r"\bcreate\s+(?:or\s+replace\s+)?aggregate\s+([\w.]+)", re.I)
CALL = re.compile(r"\b(\w+)\s*\(")
CURSOR_USE = re.compile(r"^\s*(?:fetch|move)\b.*?(\w+)\s*;?\s*$", re.I)
PREPARED_USE = re.compile(r"^\s*execute\s+(\w+)", re.I)
MESSAGE = re.compile(r"^(?:psql:.*?: )?(?:NOTICE|WARNING|INFO):", re.M)
RULE_OF_TABLE = re.compile(r"^-+(\+-+)*$")
WORD = re.compile(r"-?\w[\w.]*")
BYTES = re.compile(r"\\x((?:[0-9a-f]{2})+)")  # a bytea


def outermost(sql):
    """The statement without literals, comments and what is in parentheses."""
    text = QUOTED.sub(" ", sql)
    before = None
    while before != text:
        before = text
        text = re.sub(r"\([^()]*\)", " ", text)
    return text


def order_of(sql):
    """The items of the statement's own ORDER BY; none where it has none."""
    parts = ORDER_BY.split(outermost(sql))
    if len(parts) == 1:
        return []
    return [KEY_WORDS.sub("", item).strip().rstrip(";").strip()
            for item in ORDER_ENDS.split(parts[-1])[0].split(",")]


def query_of(sql, script):
    """What a FETCH or an EXECUTE runs, as the script before it says; else the statement."""
    for use, made in ((CURSOR_USE, r"\bdeclare\s+%s\b[^;]*?\bfor\b([^;]*)"),
                      (PREPARED_USE, r"\bprepare\s+%s\b[^;]*?\bas\b([^;]*)")):
        name = use.match(sql)
        found = name and re.findall(made % re.escape(name.group(1)), script, re.I)
        if found:
            return found[-1]
    return sql


def lines_of(text):
    return collections.Counter(line.rstrip() for line in text.split("\n"))


def words_of(text):
    text = BYTES.sub(lambda match: " ".join(re.findall("..", match.group(1))), text)
    return collections.Counter(WORD.findall(text))


def table_of(answer):
    """(names of columns, rows as lists of cells) of an answer that is one table; else None."""
    lines = answer.strip("\n").split("\n")
    if len(lines) < 3 or not RULE_OF_TABLE.match(lines[1].strip()):
        return None
    names = [name.strip() for name in lines[0].split("|")]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[2:-1]]
    if not re.match(r"\(\d+ rows?\)$", lines[-1]) or any(len(row) != len(names) for row in rows):
        return None
    return names, rows


def place_of(item, names):
    """The number of the column that an item of ORDER BY names; None if that cannot be told."""
    if item.isdigit():
        return int(item) - 1 if 0 < int(item) <= len(names) else None
    name = item.split(".")[-1].strip('"')
    return names.index(name) if names.count(name) == 1 else None


def rows_of(rows, places):
    return sorted([row[place] for place in places] for row in rows)


def same_columns(places, first, second):
    return all([row[place] for row in first] == [row[place] for row in second]
               for place in places)


def sorted_alike(items, control, ours):
    """Both have the same rows, and in each of the columns that order them, the same values in the
    same places: they differ in rows that the ORDER BY leaves equal."""
    first, second = table_of(control), table_of(ours)
    if first is None or second is None or first[0] != second[0]:
        return False
    places = [place_of(item, first[0]) for item in items]
    if None in places:
        return False
    return sorted(first[1]) == sorted(second[1]) and same_columns(places, first[1], second[1])


def made_aggregates(script):
    return {name.lower() for name in MADE_AGGREGATE.findall(script)}


def calls_in(sql):
    return {name.lower() for name in CALL.findall(QUOTED.sub(" ", sql))}


def gathers(sql, script):
    return bool(calls_in(sql) & (GATHERS | made_aggregates(script))) or "\\crosstabview" in sql


def without_messages(answer):
    return "\n".join(line for line in answer.split("\n") if not MESSAGE.match(line))


def same_rows(items, control, ours):
    if lines_of(control) != lines_of(ours):
        return False
    first, second = without_messages(control), without_messages(ours)
    return not items or first == second or sorted_alike(items, first, second)


def only_order_differs(sql, script, control, ours):
    """`script` is what the test says before."""
    items = order_of(query_of(sql, script))
    if same_rows(items, control, ours):
        return True
    told_by_row = gathers(sql, script) or (MESSAGE.search(control) and not items)
    return bool(told_by_row) and words_of(control) == words_of(ours)
