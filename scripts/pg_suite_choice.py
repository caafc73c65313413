"""What two answers to one statement may differ in because SQL leaves it open. `ORDER`: the order of
rows (pg_suite_order.py). `CHOICE`: which of the rows that an ORDER BY leaves equal a LIMIT, an OFFSET
or a cursor takes, and without ORDER BY which rows at all; what a window or a sequence gives to which
row where no ORDER BY says it; and which of several rows an error names."""

import re

from pg_suite_order import (PLAN, columns_of, only_order_differs, places_of_order, sorted_alike,
                            table_of)
from pg_suite_sql import (ORDER_BY, calls_in, closing, order_of, outermost, places_of, query_of,
                          targets_of, uses_cursor, without_quotes)

ORDER, CHOICE = "order", "choice"
LIMITED = re.compile(r"\b(limit\s+\d|offset\s+[1-9]|fetch\s+first)", re.I)
SKIPS = re.compile(r"\boffset\b", re.I)
CURSOR = re.compile(r"\bcursor\b|\bopen\s+\w+\s+(?:(?:no\s+)?scroll\s+)?for\b", re.I)
FILLED = re.compile(
    r"^\s*(?:create\s+(?:temp\w*\s+|unlogged\s+)?table|insert\s+into|update)\s+([\w.]+)(.*)",
    re.I | re.S)
MADE_ANEW = re.compile(r"^\s*(?:create\s+(?:temp\w*\s+|unlogged\s+)?table|drop\s+table"
                       r"(?:\s+if\s+exists)?|truncate(?:\s+table)?)\s+([\w.]+)", re.I)
TABLE = re.compile(r"\b(?:create|alter)\s+table\s+([\w.]+)([^;]*)", re.I)
NUMBERED = re.compile(r"\b(\w+)\s+(?:(?:small|big)?serial\b|\w+\s+generated\s+(?:always|by\s+default)"
                      r"\s+as\s+identity)", re.I)
ROUTINE = r"\bcreate\s+(?:or\s+replace\s+)?(?:function|procedure)\s+%s\b"
BODY = re.compile(r"\$(\w*)\$(.*?)\$\1\$|\bbegin\s+atomic\b(.*?)\bend\b|\bas\s+'((?:[^']|'')*)'",
                  re.I | re.S)
WINDOW = re.compile(r"\b(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*over\s*(\(|\w+)", re.I)
# Functions whose result for a row depends on its place among rows that a window's ORDER BY leaves
# equal; others only do where its frame counts rows.
BY_PLACE = {"row_number", "lag", "lead", "first_value", "last_value", "nth_value", "ntile"}
COUNTS_ROWS = re.compile(r"\brows\b", re.I)
NAMED_ROW = re.compile(r"^(DETAIL:  (?:Key \(.*?\)=|Failing row contains |Partition key of the failing"
                       r" row contains \(.*?\) = ))\((.*?)\)(\.| (?:already|is|conflicts) .*)$", re.M)


def bodies_of(sql, script):
    """The functions that a statement calls, as the script has made them."""
    for name in sorted(calls_in(sql)):
        made = list(re.finditer(ROUTINE % re.escape(name), script, re.I))
        body = made and BODY.search(script, made[-1].end())
        if body:
            yield next(group for group in body.groups()[1:] if group is not None)


def chooses_rows(sql):
    """Do some words of it take rows by an order that nothing tells?"""
    text = without_quotes(sql)
    return bool((LIMITED.search(text) or CURSOR.search(text)) and not ORDER_BY.search(text))


def made_by_choice(sql, script):
    """The statement names a table that the script has filled so since it made it."""
    filled = set()
    for statement in script.split(";"):
        text = without_quotes(statement).lstrip()
        anew, fill = MADE_ANEW.match(text), FILLED.match(text)
        if anew:
            filled.discard(anew.group(1).lower())
        if fill and chooses_rows(fill.group(2)):
            filled.add(fill.group(1).lower())
    return bool(filled & set(re.findall(r"[\w.]+", sql.lower())))


def window_is_open(item, query):
    """Is the item of a target list a window's value that depends on an order that nothing tells?"""
    for call in WINDOW.finditer(item):
        if call.group(2) == "(":
            definition = item[call.end():closing(item, call.end())]
        else:
            definition = call.group(2)
        name = re.match(r"\s*(\w+)", definition)
        named = name and re.search(r"\b%s\s+as\s*\(" % re.escape(name.group(1)), query, re.I)
        if named:
            definition += " " + query[named.end():closing(query, named.end())]
        if call.group(1).lower() in BY_PLACE or COUNTS_ROWS.search(definition):
            return True
    return False


def numbered_columns(sql, script):
    """The names of those that a sequence fills, of the tables that the statement names."""
    words = set(re.findall(r"[\w.]+", sql.lower()))
    return {name.lower() for table, definition in TABLE.findall(script) if table.lower() in words
            for name in NUMBERED.findall(definition)}


def open_columns(query, script, names):
    """The numbers of the columns that a window or a sequence fills in an order that nothing tells."""
    texts = [query]
    if targets_of(query) == ["*"]:
        texts += bodies_of(query, script)  # the rows of a function are those of its query
    numbered = numbered_columns(query, script)
    found = {place for place, name in enumerate(names) if name in numbered}
    for text in texts:
        text = without_quotes(text)
        found |= places_of(text, names, lambda item, text=text: window_is_open(item, text))
    return found


def ends_alike(places, skips, control, ours):
    """The columns that order the rows are the same, and all rows but those that the order leaves equal
    to the last one, or, where some are skipped, to the first."""
    keys = columns_of(control, places)
    if keys != columns_of(ours, places):
        return False
    ends = [keys[-1]] + ([keys[0]] if skips else [])
    first, second = (sorted(row for key, row in zip(keys, rows) if key not in ends)
                     for rows in (control, ours))
    return first == second


def chosen_alike(sql, script, control, ours):
    """As many rows of the same columns, equal in all that is not open."""
    first, second = table_of(control), table_of(ours)
    if (first is None or second is None or first[0] != second[0] or not first[1]
            or len(first[1]) != len(second[1])):
        return False
    names = first[0]
    query = query_of(sql, script)
    items = order_of(query)
    places = places_of_order(items, names)
    if places is None:
        return False
    if uses_cursor(sql) or LIMITED.search(outermost(query)):
        skips = bool(uses_cursor(sql) or SKIPS.search(outermost(query)))
        return not items or ends_alike(places, skips, first[1], second[1])
    if any(chooses_rows(body) for body in bodies_of(query, script)) or made_by_choice(query, script):
        return columns_of(first[1], places) == columns_of(second[1], places)
    kept = sorted(set(range(len(names))) - open_columns(query, script, names))
    return bool(kept) and len(kept) < len(names) and sorted_alike(
        items, names, *([[row[place] if place in kept or place in places else "" for place in
                          range(len(names))] for row in rows] for rows in (first[1], second[1])))


def without_named_rows(answer):
    """The answer without values of the rows that errors name: how many there are, and of which
    columns, stays."""
    return NAMED_ROW.sub(
        lambda match: match.group(1) + str(match.group(2).count(", ")) + match.group(3), answer)


def what_is_open(sql, script, control, ours):
    """ORDER, CHOICE, or None: the answers differ in more. `script` is what the test says before."""
    if PLAN in control or PLAN in ours:
        return None
    if only_order_differs(sql, script, control, ours):
        return ORDER
    if chosen_alike(sql, script, control, ours):
        return CHOICE
    if NAMED_ROW.search(control) and without_named_rows(control) == without_named_rows(ours):
        return CHOICE
    return None
