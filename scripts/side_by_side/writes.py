"""Draws what changes rows. Statements over many rows set columns that are not unique, or make new values of
them that no other row has: the order in which rows are taken, which differs, then decides nothing."""

import csv
import io

from side_by_side.expressions import condition, references, value
from side_by_side.queries import by_key, constant_of, shown, where
from side_by_side.statement import Statement

BULK = (20, 60, 60, 150, 150, 400)


def returning(draw, table, percent=35):
    if not draw.chance(percent):
        return ""
    if draw.chance(30):
        return " RETURNING *"
    refs = references(table)
    return " RETURNING " + ", ".join(shown(one) for one in draw.some(refs, 1, 3))


def key_condition(draw, table, one=True):
    """Of a row by its primary key, or another of its unique columns."""
    names = draw.pick(table.arbiters)
    parts = []
    for name in names:
        kind = table.column(name).kind
        if one or draw.chance(60):
            parts.append(f"{name} = {kind.constant(draw)}")
        else:
            parts.append(f"{name} IN ({', '.join(kind.constant(draw) for _ in range(draw.number(2, 6)))})")
    return " AND ".join(parts)


def conflict(draw, table, source="excluded"):
    """ON CONFLICT of one kind or other, or nothing."""
    if not table.arbiters or table.moving or draw.chance(55):
        return ""
    target = draw.pick(table.arbiters)
    named = f" ({', '.join(target)})"
    if draw.chance(40) or not table.free:
        return f" ON CONFLICT{draw.pick(('', named))} DO NOTHING"
    changed = []
    for column in draw.some(table.free, 1, 2):
        new = draw.pick((f"{source}.{column.name}", constant_of(draw, column)))
        changed.append(f"{column.name} = {new}")
    text = f" ON CONFLICT{named} DO UPDATE SET {', '.join(changed)}"
    if draw.chance(25):
        text += f" WHERE {condition(draw, references(table, table.name), 0)}"
    return text


def insert(draw, model, table=None):
    table = table or draw.pick(model.writable())
    columns = [column for column in table.written
               if column.name in table.keyed or not column.has_default or draw.chance(70)] or table.written
    rows = []
    for _ in range(draw.weighted({1: 6, 2: 3, 5: 2})):
        values = ["DEFAULT" if column.has_default and draw.chance(15) else constant_of(draw, column)
                  for column in columns]
        rows.append(f"({', '.join(values)})")
    names = ", ".join(column.name for column in columns)
    return Statement(f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}{conflict(draw, table)}"
                     f"{returning(draw, table)}", settled=not table.moving)


def insert_many(draw, model, table=None):
    """Rows made of a range of numbers, which most unique columns have once."""
    table = table or draw.pick(model.writable())
    columns = table.written
    count = draw.pick(BULK)
    first = draw.pick((0, 0, 100, 1000))
    values = ", ".join("NULL" if column.nullable and draw.chance(10) else column.kind.of_number
                       for column in columns)
    names = ", ".join(column.name for column in columns)
    return Statement(f"INSERT INTO {table.name} ({names}) SELECT {values} FROM "
                     f"generate_series({first}, {first + count}) i{conflict(draw, table)}",
                     settled=not table.moving)


def insert_select(draw, model):
    table, source = draw.pick(model.writable()), draw.pick(model.readable())
    refs = references(source, "s")
    values = [value(draw, column.kind, refs, column.nullable) for column in table.written]
    names = ", ".join(column.name for column in table.written)
    # All of the source's columns decide the order: numbers of sequences and conflicts go by it.
    order = ", ".join(shown(one) for one in refs)
    return Statement(f"INSERT INTO {table.name} ({names}) SELECT {', '.join(values)} FROM {source.name} s"
                     f"{where(draw, model, refs)} ORDER BY {order} LIMIT {draw.pick((1, 3, 20, 100))}"
                     f"{conflict(draw, table)}{returning(draw, table)}", settled=not table.moving)


def assignments(draw, columns, refs):
    return ", ".join(f"{column.name} = {value(draw, column.kind, refs, column.nullable)}" for column in columns)


def update(draw, model):
    table = draw.pick(model.writable())
    if table.arbiters and draw.chance(45):
        changed = draw.some(table.written, 1, 3)
        return Statement(f"UPDATE {table.name} SET {assignments(draw, changed, references(table))} "
                         f"WHERE {key_condition(draw, table)}{returning(draw, table)}",
                         settled=not (table.inherited or table.moving))
    if not table.free:
        return insert(draw, model, table)
    changed = draw.some(table.free, 1, 3)
    if draw.chance(20):
        return update_from(draw, model, table, changed)
    return Statement(f"UPDATE {table.name} SET {assignments(draw, changed, references(table))}"
                     f"{where(draw, model, references(table))}{returning(draw, table)}")


def update_from(draw, model, table, changed):
    """From a source that has each value of the joined column once."""
    joins = [(mine, source, theirs) for mine in table.columns for source in model.readable()
             for theirs in source.columns
             if mine.kind.family == theirs.kind.family and mine.kind.order
             and theirs.kind.family in ("int", "text", "date", "numeric")]
    if not joins:
        return update(draw, model)
    mine, source, theirs = draw.pick(joins)
    grouped = f"(SELECT {theirs.name} AS k, count(*) AS n FROM {source.name} GROUP BY {theirs.name})"
    refs = references(table, "u")
    words = []
    for column in changed:
        new = value(draw, column.kind, refs, column.nullable)
        if column.kind.family == "text" and column.kind.cast == "text" and draw.chance(50):
            new = "'n' || s.n"
        words.append(f"{column.name} = {new}")
    return Statement(f"UPDATE {table.name} u SET {', '.join(words)} FROM {grouped} s WHERE u.{mine.name} = s.k"
                     f"{draw.pick(('', f' AND {condition(draw, refs, 0)}'))}")


def move_keys(draw, model):
    """Many numbers of a unique column: to where no row is, or onto each other where a heap allows it. Not where
    a trigger counts rows: of two that have one key for a while a table shows one (docs/limitations.md)."""
    moving = [table for table in model.plain() if table.moving and not table.watched]
    if moving:
        table = draw.pick(moving)
        name = draw.pick(table.moving)
        new = draw.pick((f"{name} + {draw.number(1, 3)}", f"-{name}", f"{draw.number(5, 12)} - {name}",
                         f"{name} - {draw.number(1, 3)}", f"CASE WHEN {name} = 1 THEN 2 ELSE 1 END"))
        return Statement(f"UPDATE {table.name} SET {name} = {new} WHERE {name} BETWEEN {draw.number(-20, 3)} "
                         f"AND {draw.number(2, 1200)}{returning(draw, table)}")
    able = [(table, column) for table in model.plain() for column in table.columns
            if [column.name] in [table.key, *table.uniques] and column.kind.name in ("int4", "int8")
            and column.given and table.kind == "table"]
    if not able:
        return update(draw, model)
    table, column = draw.pick(able)
    by = draw.number(2, 50) * 100_000
    return Statement(f"UPDATE {table.name} SET {column.name} = {column.name} {draw.pick('+-')} {by} "
                     f"WHERE {column.name} BETWEEN {draw.number(-10, 5)} AND {draw.number(0, 2000)}"
                     f"{returning(draw, table)}")


def delete(draw, model):
    table = draw.pick(model.writable())
    refs = references(table, "d")
    if table.arbiters and draw.chance(40):
        return Statement(f"DELETE FROM {table.name} WHERE {key_condition(draw, table, False)}{returning(draw, table)}")
    if draw.chance(20):
        source = draw.pick(model.readable())
        pairs = [(one, other) for one in refs for other in references(source, "s")
                 if one.kind.family == other.kind.family and one.kind.order]
        if pairs:
            one, other = draw.pick(pairs)
            return Statement(f"DELETE FROM {table.name} d USING {source.name} s WHERE {one.text} = {other.text} "
                             f"AND {condition(draw, refs, 0)}")
    return Statement(f"DELETE FROM {table.name} d{where(draw, model, refs, 92)}{returning(draw, table, 20)}")


def merge(draw, model):
    # Numbers of sequences would go by the order of the join, as would what a trigger sees of the rows.
    able = [table for table in model.plain() if table.arbiters and not table.inherited and not table.watched
            and not any(column.identity for column in table.columns)]
    if not able:
        return update(draw, model)
    table = draw.pick(able)
    names = draw.pick(table.arbiters)
    column = table.column(names[0])
    rows = ", ".join(f"({one}, {number})" for number, one in
                     enumerate(column.kind.literal(text) for text in draw.some(column.kind.values, 1, 6)))
    text = f"MERGE INTO {table.name} m USING (VALUES {rows}) s (k, n) ON m.{column.name} = s.k"
    refs = references(table, "m")
    # Another unique column of a row may be free once one that matches is deleted: then the order decides.
    settled = len(table.arbiters) == 1 and not names[1:] and not table.mirrored
    inserts = draw.chance(75)
    deletes = settled or not inserts
    if draw.chance(40) and deletes:
        text += f" WHEN MATCHED AND {condition(draw, refs, 0)} THEN {draw.pick(('DELETE', 'DO NOTHING'))}"
    if table.free and draw.chance(70):
        changed = draw.some(table.free, 1, 2)
        text += f" WHEN MATCHED THEN UPDATE SET {assignments(draw, changed, refs)}"
    elif draw.chance(50) and deletes:
        text += " WHEN MATCHED THEN DELETE"
    if inserts or " WHEN " not in text:
        values = ", ".join("s.k" if one is column else constant_of(draw, one) for one in table.written)
        given = ", ".join(one.name for one in table.written)
        text += f" WHEN NOT MATCHED{draw.pick(('', ' AND s.n > 1'))} THEN INSERT ({given}) VALUES ({values})"
    return Statement(text)


def change_with(draw, model):
    """A changing CTE, of another table than the rest of the statement changes."""
    able = [table for table in model.writable() if table.kind != "view"]
    if len(able) < 2:
        return delete(draw, model)
    first, second = draw.some(able, 2, 2)
    names = ", ".join(shown(one) for one in references(first))
    inner = draw.pick((f"DELETE FROM {first.name}{where(draw, model, references(first), 90)} RETURNING {names}",
                       f"INSERT INTO {first.name} ({', '.join(c.name for c in first.written)}) VALUES "
                       f"({', '.join(constant_of(draw, c) for c in first.written)}) RETURNING {names}"))
    if draw.chance(50) or not second.free:
        return Statement(f"WITH w AS ({inner}) SELECT (SELECT count(*) FROM {first.name}), count(*) FROM w")
    changed = draw.some(second.free, 1, 1)
    return Statement(f"WITH w AS ({inner}) UPDATE {second.name} SET "
                     f"{assignments(draw, changed, references(second))} WHERE (SELECT count(*) FROM w) > 0")


def counted(draw, model):
    """Values that a function has counted, row after row in a given order."""
    able = [table for table in model.plain() if any(column.kind.family == "int" for column in table.written)]
    if not model.functions or not able:
        return update(draw, model)
    name, on = draw.pick(model.functions)
    table = next((one for one in able if one.name == on), None) or draw.pick(able)
    rows = []
    for number in range(draw.number(1, 4)):
        values = [f"{name}() * 100 + {number}" if column.kind.name in ("int4", "int8") else constant_of(draw, column)
                  for column in table.written]
        rows.append(f"({', '.join(values)})")
    names = ", ".join(column.name for column in table.written)
    return Statement(f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}{conflict(draw, table)}"
                     f"{returning(draw, table)}", settled=not table.moving)


def truncate(draw, model):
    tables = [table.name for table in draw.some(model.plain(), 1, 2)]
    tail = draw.pick(("", "", " CASCADE", " RESTART IDENTITY"))
    return Statement(f"TRUNCATE {', '.join(tables)}{tail}", settled=True)


def copy_out(draw, model):
    table = draw.pick(model.readable())
    if draw.chance(50) and table.kind in ("table",):
        names = ", ".join(column.name for column in table.columns if column.name != "g")
        return Statement(f"COPY {table.name} ({names}) TO STDOUT{draw.pick(('', ' (FORMAT csv)'))}")
    return Statement(f"COPY ({by_key(draw, model).text}) TO STDOUT")


def copy_in(draw, model):
    table = draw.pick(model.plain())
    columns = table.written
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for _ in range(draw.pick((1, 3, 10, 40))):
        row = ["\\N" if column.nullable and draw.chance(12) else column.kind.value(draw) for column in columns]
        writer.writerow(row)
    names = ", ".join(column.name for column in columns)
    data = text.getvalue().replace('"\\N"', "")
    return Statement(f"COPY {table.name} ({names}) FROM STDIN (FORMAT csv)", data=data)


KINDS = {insert: 26, insert_many: 8, insert_select: 10, update: 26, delete: 10, merge: 8, change_with: 4,
         move_keys: 6, counted: 4, truncate: 1, copy_out: 3, copy_in: 4}


def write(draw, model):
    return draw.weighted(KINDS)(draw, model)
