"""Draws SELECTs. What they return is decided by SQL alone: rows that LIMIT takes have a total order, and
aggregates do not depend on the order of their input."""

from side_by_side.expressions import Reference, condition, references, value
from side_by_side.statement import Statement

LOCKS = ("FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE")
POLICIES = ("", "", "", " NOWAIT", " SKIP LOCKED")


def shown(reference):
    return reference.text if reference.kind.order else f"{reference.text}::text"


def source(draw, model, alias, tables=None):
    """(words for FROM, references)."""
    table = draw.pick(tables or model.readable())
    form = draw.number(1, 10)
    if form == 1:
        kept = draw.some(table.columns, 1, 4)
        names = ", ".join(column.name for column in kept)
        words = f"(SELECT {names} FROM {table.name} WHERE {condition(draw, references(table))}) {alias}"
        return words, [Reference(f"{alias}.{column.name}", column.kind) for column in kept]
    if form == 2:
        column = draw.pick(table.columns)
        rows = ", ".join(f"({column.kind.constant(draw)}, {number})" for number in range(draw.number(1, 6)))
        return f"(VALUES {rows}) {alias} (v, n)", [Reference(f"{alias}.v", column.kind)]
    return f"{table.name} {alias}", references(table, alias)


def joined(draw, model, most=3):
    words, refs = source(draw, model, "a")
    small = draw.chance(40)  # by hope: many rows may have one value
    for alias in "bcd"[:draw.weighted({0: 5, 1: 4, 2: 1}) if most > 1 else 0]:
        more, others = source(draw, model, alias)
        pairs = [(one, other) for one in refs for other in others
                 if one.kind.family == other.kind.family and one.kind.wide and one.kind.order
                 and (one.unique or other.unique or (alias == "b" and small))]
        if not pairs:
            continue
        one, other = draw.pick(pairs)
        kind = draw.pick(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        on = f"{one.text} = {other.text}"
        if kind != "FULL JOIN" and draw.chance(25):
            on += f" AND {condition(draw, refs + others, 0)}"
        words, refs = f"{words} {kind} {more} ON {on}", refs + others
    return words, refs


def where(draw, model, refs, percent=75):
    if not draw.chance(percent):
        return ""
    parts = [condition(draw, refs)]
    if draw.chance(20):
        parts.append(subquery_condition(draw, model, refs))
    return " WHERE " + draw.pick((" AND ", " OR ")).join(parts)


def subquery_condition(draw, model, refs):
    reference = draw.pick(refs)
    matching = [(table, column) for table in model.readable() for column in table.columns
                if column.kind.family == reference.kind.family and column.kind.order]
    if not matching or not reference.kind.order:
        return condition(draw, refs, 0)
    table, column = draw.pick(matching)
    inner = condition(draw, references(table, "s"), 0)
    body = f"FROM {table.name} s WHERE {inner}"
    return draw.pick((
        f"{reference.text} IN (SELECT s.{column.name} {body})",
        f"{reference.text} NOT IN (SELECT s.{column.name} {body} AND s.{column.name} IS NOT NULL)",
        f"{draw.pick(('', 'NOT '))}EXISTS (SELECT 1 {body} AND s.{column.name} = {reference.text})",
        f"{reference.text} >= ALL (SELECT s.{column.name} {body})",
        f"(SELECT count(*) {body} AND s.{column.name} = {reference.text}) > 1"))


def ordered(draw, count, percent=50):
    """ORDER BY all columns of the result, in some order of direction; and how many."""
    if not draw.chance(percent):
        return "", 0
    ways = [draw.pick(("", "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")) for _ in range(count)]
    text = " ORDER BY " + ", ".join(f"{number}{way}" for number, way in enumerate(ways, 1))
    if draw.chance(40):
        text += f" LIMIT {draw.number(0, 8)}"
    if draw.chance(10):
        text += f" OFFSET {draw.number(0, 4)}"
    return text, count


def plain(draw, model):
    words, refs = joined(draw, model)
    if draw.chance(20):
        outputs = refs
    else:
        outputs = draw.some(refs, 1, 5)
    distinct = "DISTINCT " if draw.chance(12) else ""
    filtered = where(draw, model, refs)
    tail, order = ordered(draw, len(outputs))
    if not distinct and tail and draw.chance(10) and outputs[0].kind.order:
        # The first of each group is decided, for all columns are in the order.
        distinct = f"DISTINCT ON ({outputs[0].text}) "
        tail = " ORDER BY " + ", ".join(map(shown, outputs))
    elif not distinct and draw.chance(6):
        tail += " " + draw.pick(LOCKS)
    return Statement(f"SELECT {distinct}{', '.join(map(shown, outputs))} FROM {words}{filtered}{tail}", order)


def by_key(draw, model):
    """Whole rows by a primary key or an indexed column, as point queries do."""
    keyed = [table for table in model.readable() if table.arbiters + table.indexed]
    if not keyed:
        return plain(draw, model)
    table = draw.pick(keyed)
    names = draw.pick(table.arbiters + table.indexed)
    parts = []
    for name in names:
        kind = table.column(name).kind
        form = draw.number(1, 11)
        if form == 11:
            parts.append(f"{name} IS {draw.pick(('', 'NOT '))}NULL")
        elif form <= 6:
            parts.append(f"{name} = {kind.constant(draw)}")
        elif form <= 8:
            parts.append(f"{name} IN ({', '.join(kind.constant(draw) for _ in range(draw.number(1, 5)))})")
        else:
            parts.append(f"{name} {draw.pick(('<', '>', '<=', '>='))} {kind.constant(draw)}")
    if draw.chance(20):
        parts.append(condition(draw, references(table), 0))
    tail, order = "", 0
    if draw.chance(30):
        tail, order = " ORDER BY " + ", ".join(names), len(names)
        if draw.chance(50) and names == table.key and not table.inherited:
            tail += f" LIMIT {draw.number(1, 3)}"
    rest = [column for column in table.columns if column.name not in names]
    outputs = [*names, *(shown(Reference(column.name, column.kind)) for column in rest)]
    if draw.chance(25):
        tail += f" {draw.pick(LOCKS)}{draw.pick(POLICIES)}"
    return Statement(f"SELECT {', '.join(outputs)} FROM {table.name} WHERE {' AND '.join(parts)}{tail}", order)


def aggregates(draw, refs):
    found = ["count(*)"]
    for reference in draw.some(refs, 1, 3):
        text, kind = reference.text, reference.kind
        choices = [f"count({text})"]
        if kind.order:
            choices.append(f"count(DISTINCT {text})")
        if kind.family in ("int", "numeric", "float", "date", "text", "time", "small", "interval", "inet"):
            choices += [f"min({text})", f"max({text})"]
        if kind.sums:
            choices += [f"sum({text}::numeric)", f"sum(DISTINCT {text}::numeric)", f"avg({text}::numeric)"]
        if kind.family == "bool":
            choices += [f"bool_and({text})", f"bool_or({text})"]
        if kind.family == "text":
            choices.append(f"string_agg({text}::text, ',' ORDER BY {text}::text)")
        if kind.family == "int":
            choices.append(f"array_agg({text}::int8 ORDER BY {text} DESC)")
        chosen = draw.pick(choices)
        if draw.chance(15):
            chosen += f" FILTER (WHERE {condition(draw, refs, 0)})"
        found.append(chosen)
    return found


def grouped(draw, model):
    words, refs = joined(draw, model)
    groups = [one for one in draw.some(refs, 0, 2) if one.kind.order]
    outputs = [one.text for one in groups] + aggregates(draw, refs)
    text = f"SELECT {', '.join(outputs)} FROM {words}{where(draw, model, refs)}"
    if groups:
        by = ", ".join(one.text for one in groups)
        text += f" GROUP BY {draw.pick((by, by, by, f'ROLLUP ({by})', f'CUBE ({by})'))}"
        if draw.chance(20):
            text += " HAVING count(*) > 1"
    # PostgreSQL 15 takes columns that a join has made equal for one in ORDER BY, though a grouping set
    # has a NULL for one of them alone.
    sets = "ROLLUP (" in text or "CUBE (" in text
    tail, order = ordered(draw, len(outputs), 0 if sets else 40)
    return Statement(text + tail, order)


def windowed(draw, model):
    words, refs = source(draw, model, "a")
    able = [one for one in refs if one.kind.order]
    if not able:
        return plain(draw, model)
    by = draw.some(able, 1, 2)
    every = ", ".join(shown(one) for one in refs)
    # Whole rows as the last key: rows that are equal in all are the same row to a reader.
    total = f"ORDER BY {', '.join(one.text for one in by)}, {every}"
    peers = f"PARTITION BY {by[0].text}"
    functions = [f"row_number() OVER ({total})", f"rank() OVER (ORDER BY {by[0].text})",
                 f"count(*) OVER ({peers})", f"dense_rank() OVER (ORDER BY {by[-1].text} DESC)",
                 f"count(*) OVER (ORDER BY {by[0].text})", f"first_value({by[0].text}) OVER ({total})",
                 f"lag({by[0].text}) OVER ({total})"]
    outputs = [every, *draw.some(functions, 1, 2)]
    return Statement(f"SELECT {', '.join(outputs)} FROM {words}{where(draw, model, refs)}")


def combined(draw, model):
    """UNION and its kind of two tables' columns of one type."""
    words, refs = source(draw, model, "a")
    first = draw.pick([one for one in refs if one.kind.order] or [None])
    if first is None:
        return plain(draw, model)
    more, others = source(draw, model, "b")
    matching = [one for one in others if one.kind.name == first.kind.name]
    second = draw.pick(matching).text if matching else first.kind.constant(draw)
    kind = draw.pick(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
    text = (f"SELECT {first.text} FROM {words}{where(draw, model, refs)} {kind} "
            f"SELECT {second} FROM {more}{where(draw, model, others)}")
    tail, order = ordered(draw, 1)
    return Statement(text + tail, order)


def with_queries(draw, model):
    table = draw.pick(model.readable())
    materialized = draw.pick(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
    names = ", ".join(column.name for column in table.columns)
    inner = f"SELECT {names} FROM {table.name}{where(draw, model, references(table))}"
    refs = references(table, "w")
    outputs = draw.some(refs, 1, 3)
    form = draw.number(1, 3)
    if form == 1:
        tail, order = ordered(draw, len(outputs))
        return Statement(f"WITH w AS {materialized}({inner}) SELECT {', '.join(map(shown, outputs))} FROM w"
                         f"{where(draw, model, refs)}{tail}", order)
    if form == 2:
        return Statement(f"WITH w AS {materialized}({inner}) SELECT count(*), (SELECT count(*) FROM w) FROM w w2, w"
                         f"{where(draw, model, refs, 100)}")
    return Statement("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5), "
                     f"w AS ({inner}) SELECT n, (SELECT count(*) FROM w{where(draw, model, refs, 100)} "
                     "AND n > 0) FROM r ORDER BY n", 1)


def nested(draw, model):
    """Subqueries in the target list and LATERAL."""
    words, refs = source(draw, model, "a")
    outer = draw.pick(refs)
    inner, others = source(draw, model, "b")
    matching = [one for one in others if one.kind.family == outer.kind.family and one.kind.order]
    link = f"{draw.pick(matching).text} = {outer.text}" if matching else condition(draw, others, 0)
    if draw.chance(50):
        return Statement(f"SELECT {shown(outer)}, (SELECT count(*) FROM {inner} WHERE {link}) FROM {words}"
                         f"{where(draw, model, refs)}")
    outputs = draw.some(others, 1, 2)
    tail, _ = ordered(draw, len(outputs), 100)
    chosen = ", ".join(f"{shown(one)} AS l{number}" for number, one in enumerate(outputs))
    left = draw.chance(50)
    return Statement(f"SELECT {shown(outer)}, l.* FROM {words} {'LEFT' if left else 'CROSS'} JOIN LATERAL "
                     f"(SELECT {chosen} FROM {inner} WHERE {link}{tail}) l{' ON true' if left else ''}"
                     f"{where(draw, model, refs)}")


def extreme(draw, model):
    """First and last rows by a column, for which an index may have the order."""
    table = draw.pick(model.readable())
    able = [column for column in table.columns if column.kind.order]
    if not able:
        return plain(draw, model)
    column = draw.pick(able)
    refs = references(table)
    if draw.chance(40) and column.kind.family in ("int", "date", "text", "numeric"):
        return Statement(f"SELECT min({column.name}), max({column.name}) FROM {table.name}{where(draw, model, refs, 40)}")
    way = draw.pick(("", " DESC", " NULLS FIRST"))
    kept = [column.name] + [shown(Reference(c.name, c.kind)) for c in table.columns if c is not column]
    return Statement(f"SELECT {', '.join(kept)} FROM {table.name}{where(draw, model, refs, 50)} ORDER BY 1{way} "
                     f"FETCH FIRST {draw.number(1, 3)} ROWS WITH TIES", 1)


SHAPES = {plain: 30, by_key: 25, grouped: 15, windowed: 6, combined: 7, with_queries: 6, nested: 6, extreme: 8}


def query(draw, model):
    return draw.weighted(SHAPES)(draw, model)


def totally_ordered(draw, model):
    """For cursors: (text, columns)."""
    table = draw.pick(model.readable())
    refs = references(table)
    outputs = [shown(one) for one in refs]
    places = ", ".join(str(number) for number in range(1, len(outputs) + 1))
    return (f"SELECT {', '.join(outputs)} FROM {table.name}{where(draw, model, refs, 50)} ORDER BY {places}",
            len(outputs))


def constant_of(draw, column):
    return value(draw, column.kind, nullable=column.nullable, depth=0)
