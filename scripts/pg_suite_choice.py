"""What two answers to one statement may differ in because SQL leaves it open. `ORDER`: the order of
rows (pg_suite_order.py). `CHOICE`: which rows a LIMIT, a cursor or a function of one value takes, and
what a window or a sequence gives to which row, where no ORDER BY says it, in the statement, in
functions that it calls and for tables that the test has filled so; and which of several rows an error
names. There, as many rows of the same columns have to come."""

import itertools
import re

from pg_suite_order import (CURSOR_USE, ORDER_BY, QUOTED, calls_in, made_aggregates,
                            only_order_differs, order_of, outermost, query_of, rows_of,
                            place_of, same_columns, table_of)

ORDER, CHOICE = "order", "choice"
LIMITED = re.compile(r"\b(limit\s+\d|offset\s+[1-9]|fetch\s+first|distinct\s+on\b)", re.I)
CURSOR = re.compile(r"\bcursor\b|\bopen\s+\w+\s+(?:(?:no\s+)?scroll\s+)?for\b", re.I)
FILLED = re.compile(
    r"^\s*(?:create\s+(?:temp\w*\s+|unlogged\s+)?table|insert\s+into|update)\s+([\w.]+)(.*)",
    re.I | re.S)
TABLE = re.compile(r"\b(?:create|alter)\s+table\s+([\w.]+)([^;]*)", re.I)
NUMBERED = re.compile(r"\bserial\b|\bas\s+identity\b", re.I)
ROUTINE = r"\bcreate\s+(?:or\s+replace\s+)?(?:function|procedure)\s+%s\b"
BODY = re.compile(r"\$(\w*)\$(.*?)\$\1\$|\bbegin\s+atomic\b(.*?)\bend\b|\bas\s+'((?:[^']|'')*)'",
                  re.I | re.S)
WINDOW = re.compile(r"\bover\s*(?:\(|\w)", re.I)
NAMED_ROW = re.compile(
    r"^(DETAIL:  (?:Key|(?:Failing|Partition key of the failing) row contains) ).*?(\.| (?:already|is|conflicts) .*)$", re.M)


def bodies_of(sql, script):
    """(head, body) of the functions that a statement calls, as the script has made them."""
    for name in sorted(calls_in(sql)):
        made = list(re.finditer(ROUTINE % re.escape(name), script, re.I))
        body = made and BODY.search(script, made[-1].end())
        if body:
            text = next(group for group in body.groups()[1:] if group is not None)
            yield script[made[-1].end():body.start()], text


def chooses_rows(sql):
    """Do some words of it take rows by an order that nothing tells?"""
    text = QUOTED.sub(" ", sql)
    return bool((LIMITED.search(text) or CURSOR.search(text)) and not ORDER_BY.search(text))


def takes_the_first(head, body):
    """Is it an SQL function of one value whose query may have several rows?"""
    text = outermost(body)
    return not re.search(r"\b(setof|table)\b", head, re.I) and bool(
        re.match(r"\s*select\b.*\bfrom\b", text, re.I | re.S)) and not ORDER_BY.search(text)


def numbered_columns(sql, script):
    """How many the script has given to tables that the statement names."""
    words = set(re.findall(r"[\w.]+", sql.lower()))
    return sum(len(NUMBERED.findall(definition)) for name, definition in TABLE.findall(script)
               if name.lower() in words)


def made_by_choice(sql, script):
    """The statement names a table that the script has filled so."""
    words = set(re.findall(r"[\w.]+", sql.lower()))
    for statement in script.split(";"):
        filled = FILLED.match(QUOTED.sub(" ", statement).lstrip())
        if filled and filled.group(1).lower() in words and chooses_rows(filled.group(2)):
            return True
    return False


def columns_that_choose(sql, query, script):
    """How many there are, with columns that a sequence fills; 0 where whole rows are chosen, and None
    where nothing is: by the statement, by the functions and aggregates that it calls, and by what has
    filled the tables that it names."""
    if CURSOR_USE.match(sql) or LIMITED.search(outermost(query)):
        return 0
    bodies = list(bodies_of(sql, script))
    texts = [query, *(body for _, body in bodies)]
    if (any(chooses_rows(text) for text in texts) or made_by_choice(sql, script)
            or any(takes_the_first(head, body) for head, body in bodies)
            or made_aggregates(script) & calls_in(sql)):
        return 0
    numbers = sum(len(WINDOW.findall(QUOTED.sub(" ", text))) for text in texts)
    return numbers + numbered_columns(sql, script) or None


def chosen_alike(columns, items, control, ours):
    """As many rows of the same columns, equal in as far as the statement orders them, and, unless
    rows are chosen, in all columns but so many."""
    first, second = table_of(control), table_of(ours)
    if first is None or second is None or first[0] != second[0] or len(first[1]) != len(second[1]):
        return False
    places = [place_of(item, first[0]) for item in items]
    if None in places or not same_columns(places, first[1], second[1]):
        return False
    if columns == 0:
        return True
    kept = range(max(len(first[0]) - columns, 1), len(first[0]) + 1)
    return any(rows_of(first[1], places) == rows_of(second[1], places)
               for count in kept for places in itertools.combinations(range(len(first[0])), count))


def what_is_open(sql, script, control, ours):
    """ORDER, CHOICE, or None: the answers differ in more. `script` is what the test says before."""
    if only_order_differs(sql, script, control, ours):
        return ORDER
    query = query_of(sql, script)
    columns = columns_that_choose(sql, query, script)
    if columns is not None and chosen_alike(columns, order_of(query), control, ours):
        return CHOICE
    if NAMED_ROW.search(control) and NAMED_ROW.sub(r"\1\2", control) == NAMED_ROW.sub(
            r"\1\2", ours):
        return CHOICE
    return None
