"""Whether two answers to one statement differ in nothing but an order that SQL does not promise: rows
of a query without an ORDER BY of its own, rows that one leaves equal, messages about rows, and what an
aggregate like string_agg gathers of its rows without one."""

import collections
import re

from pg_suite_sql import (ORDER_BY, arguments_of, calls_in, order_of, places_of, query_of,
                          without_quotes)

# Aggregates whose results show the order of rows, beside those that the test itself has made.
GATHERS = {"string_agg", "array_agg", "xmlagg", "json_agg", "jsonb_agg", "json_object_agg",
           "jsonb_object_agg"}
# Functions that show rows as XML: of tables, and of a query that stands in their arguments.
TO_XML = {what + "_to_xml" + more for what in ("table", "schema", "query")
          for more in ("", "_and_xmlschema")}
MADE_AGGREGATE = re.compile(r"\bcreate\s+(?:or\s+replace\s+)?aggregate\s+([\w.]+)", re.I)
MESSAGE = re.compile(r"^(?:psql:.*?: )?(?:NOTICE|WARNING|INFO):")
RULE_OF_TABLE = re.compile(r"^-+(\+-+)*$")
END_OF_TABLE = re.compile(r"^\((\d+) rows?\)$", re.M)
CONTINUED = "+"  # what psql prints after a line of a cell that has more
WORD = re.compile(r"-?\w[\w.]*")
BYTES = re.compile(r"\\x((?:[0-9a-f]{2})+)")  # a bytea
OVER = re.compile(r"\bover\b", re.I)
COPY = re.compile(r"\s*copy\b", re.I)
# Of a list between commas in a message: rows in parentheses, or words.
THING = re.compile(r"\([^()]*\)|[^\s,()]+")
LIST = re.compile(r"(?:%s)(?:, ?(?:%s))+" % (THING.pattern, THING.pattern))
CROSSTAB = "\\crosstabview"
PLAN = "QUERY PLAN"


def lines_of(text):
    return collections.Counter(line.rstrip() for line in text.split("\n"))


def words_of(text):
    text = BYTES.sub(lambda match: " ".join(re.findall("..", match.group(1))), text)
    return sorted(WORD.findall(text))


def cells_of(line, widths):
    """The cells of a table's line as psql pads them; None if that cannot be told."""
    cells = line.split("|")
    if len(cells) != len(widths):  # there is one in a name or a value
        starts = [sum(widths[:place]) + place for place in range(len(widths))]
        cells = [line[start:start + width] for start, width in zip(starts, widths)]
        if any(line[start - 1] != "|" for start in starts[1:] if start <= len(line)):
            return None
    return cells


def table_of(answer):
    """(names of columns, rows as lists of cells) of an answer that is one table; else None."""
    lines = answer.strip("\n").split("\n")
    if len(lines) < 3 or not RULE_OF_TABLE.match(lines[1].strip()):
        return None
    widths = [len(part) for part in lines[1].strip().split("+")]
    rows = []
    continues = False
    for line in lines[:1] + lines[2:-1]:
        padded = cells_of(line, widths)
        if padded is None:
            return None
        more = [len(cell) == width and cell.endswith(CONTINUED)
                for cell, width in zip(padded, widths)]
        cells = [(cell[:-1] if has_more else cell).strip()
                 for cell, has_more in zip(padded, more)]
        if continues:
            rows[-1] = [before + "\n" + cell for before, cell in zip(rows[-1], cells)]
        else:
            rows.append(cells)
        continues = any(more)
    end = END_OF_TABLE.match(lines[-1])
    if end is None or int(end.group(1)) != len(rows) - 1:
        return None
    return rows[0], rows[1:]


def place_of(item, names):
    """The number of the column that an item of ORDER BY names; None if that cannot be told."""
    if item.isdigit():
        return int(item) - 1 if 0 < int(item) <= len(names) else None
    name = item.split(".")[-1].strip('"')
    return names.index(name) if names.count(name) == 1 else None


def places_of_order(items, names):
    """The numbers of the columns that order a table; None if that cannot be told."""
    places = [place_of(item, names) for item in items]
    return None if None in places else places


def columns_of(rows, places):
    return [[row[place] for place in places] for row in rows]


def sorted_alike(items, names, first, second):
    """Both have the same rows, and in each of the columns that order them, the same values in the
    same places: they differ in rows that the ORDER BY leaves equal."""
    places = places_of_order(items, names)
    if places is None:
        return first == second
    return (sorted(first) == sorted(second)
            and columns_of(first, places) == columns_of(second, places))


def rows_as_xml(cell):
    """The rows in what table_to_xml returns, which empty lines part."""
    return sorted(cell.split("\n\n"))


def gathered_alike(sql, items, script, control, ours):
    """Beside, columns that an aggregate gathers of rows in no order may have their words in any."""
    names = GATHERS | {name.lower() for name in MADE_AGGREGATE.findall(script)}
    first, second = table_of(control), table_of(ours)
    if first is None or second is None or first[0] != second[0]:
        return False
    if any(ORDER_BY.search(arguments) for arguments in arguments_of(names, sql)):
        return False
    of_words = places_of(sql, first[0], lambda item: bool(
        calls_in(item) & names and not OVER.search(item)))
    of_rows = places_of(sql, first[0], lambda item: bool(
        calls_in(item) & TO_XML and not ORDER_BY.search(sql)))
    rows = [[[words_of(cell) if place in of_words else rows_as_xml(cell) if place in of_rows
              else [cell] for place, cell in enumerate(row)]
             for row in table] for table in (first[1], second[1])]
    return bool(of_words | of_rows) and sorted_alike(items, first[0], *rows)


def crosstab_alike(sql, items, control, ours):
    """Rows of a \\crosstabview come in the order of its query, and its columns do."""
    first, second = table_of(control), table_of(ours)
    if CROSSTAB not in sql or first is None or second is None:
        return False
    gathered = bool(calls_in(sql) & GATHERS) and not any(
        ORDER_BY.search(arguments) for arguments in arguments_of(GATHERS, sql))
    columns = []
    for names, rows in (first, second):
        found = [[name, *([words_of(row[place]) if gathered else [row[place]] for row in rows])]
                 for place, name in enumerate(names)]
        columns.append(found if items else found[:1] + sorted(found[1:]))
    if items:
        return columns[0] == columns[1]
    heads = [[column[0] for column in table] for table in columns]
    rows = [sorted(zip(*(column[1:] for column in table))) for table in columns]
    return heads[0] == heads[1] and rows[0] == rows[1]


def with_lists_sorted(message):
    """Triggers gather rows in messages."""
    return LIST.sub(lambda found: ", ".join(sorted(THING.findall(found.group()))), message)


def parted(answer):
    """(messages, which come in any order; the rest of the answer)."""
    lines = answer.split("\n")
    return (sorted(with_lists_sorted(line) for line in lines if MESSAGE.match(line)),
            "\n".join(line for line in lines if not MESSAGE.match(line)))


def first_table(answer):
    """(the answer up to the end of its first table, the rest of it)."""
    end = END_OF_TABLE.search(answer)
    return (answer[:end.end()], answer[end.end():]) if end else (answer, "")


def same_rows(sql, items, control, ours):
    """Tables are compared row by row, what COPY prints line by line."""
    if control == ours:
        return True
    if lines_of(control) != lines_of(ours):
        return False
    if COPY.match(sql):
        return not ORDER_BY.search(without_quotes(sql))
    first, second = table_of(control), table_of(ours)
    if first is None or second is None:
        return False
    return first[0] == second[0] and sorted_alike(items, first[0], first[1], second[1])


def only_order_differs(sql, script, control, ours):
    """`script` is what the test says before."""
    if PLAN in control or PLAN in ours:
        return False
    query = query_of(sql, script)
    items = order_of(query)
    (messages, control), (our_messages, ours) = parted(control), parted(ours)
    # Where a line has several statements, the order is the first one's.
    (control, more), (ours, our_more) = first_table(control), first_table(ours)
    if messages != our_messages or more != our_more:
        return False
    return (same_rows(sql, items, control, ours) or crosstab_alike(sql, items, control, ours)
            or gathered_alike(query, items, script, control, ours))
