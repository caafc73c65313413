"""Draws tables with their indexes, constraints, triggers, partitions, views and children. Each function is a
generator of statements that gets their outcomes; what has failed is not in the model."""

from side_by_side import column_types, triggers
from side_by_side.column_types import TYPES
from side_by_side.expressions import condition, references
from side_by_side.model import Column, Table
from side_by_side.statement import Statement

ACTIONS = ("", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE ON DELETE RESTRICT",
           "ON UPDATE CASCADE ON DELETE CASCADE", "DEFERRABLE INITIALLY DEFERRED",
           "ON DELETE SET DEFAULT", "ON UPDATE SET NULL DEFERRABLE")


def schema(draw, model):
    for text in column_types.OWN_TYPES:
        yield Statement(text)
    for _ in range(draw.number(1, 3)):
        yield from table(draw, model)
    for _ in range(draw.number(0, 4)):
        yield from index(draw, model)
    for _ in range(draw.weighted({0: 5, 1: 3, 2: 1})):
        yield from view(draw, model)
    if draw.chance(12):
        yield from child(draw, model)
    if draw.chance(30):
        yield from counting_function(draw, model)
    for _ in range(draw.weighted({0: 6, 1: 3, 2: 1})):
        yield from triggers.trigger(draw, model)


def drawn_columns(draw):
    count = draw.number(2, 6) if draw.chance(95) else draw.number(20, 40)
    columns = [Column(f"c{number}", column_types.drawn(draw)) for number in range(1, count + 1)]
    for column in columns:
        column.nullable = draw.chance(75)
        column.has_default = draw.chance(25)
    return columns


def definition(draw, column):
    words = [column.name, column.kind.name]
    if column.has_default:
        words.append("DEFAULT " + column.kind.constant(draw))
    if not column.nullable:
        words.append("NOT NULL")
    return " ".join(words)


def table(draw, model):
    made = Table(model.name("t"), drawn_columns(draw))
    parts = [definition(draw, column) for column in made.columns]
    make_key(draw, made, parts)
    if draw.chance(10) and made.columns[0].kind.family == "int":
        made.columns.append(Column("g", TYPES["text"], given=False))
        parts.append(f"g text GENERATED ALWAYS AS ('g' || {made.columns[0].name}::text) STORED")
    # An INSERT that fails by a key that is checked at the end takes a number for each of its rows.
    if draw.chance(8) and not (draw.several or made.moving):
        made.columns.append(Column("serial", TYPES["int8"], given=False, identity=True))
        parts.append("serial int8 GENERATED ALWAYS AS IDENTITY")
    if draw.chance(25):
        parts.append(f"CHECK ({condition(draw, references(made))})")
    if draw.chance(25):
        make_unique(draw, made, parts)
    if draw.chance(40):
        make_foreign_key(draw, model, made, parts)
    tail = "@ORDERED@" if draw.chance(40) and made.key else ""
    # Hashes of an enum are those of its values' numbers in the catalog.
    enum = any(made.column(name).kind.family == "mood" for name in made.key)
    if made.key and not (made.uniques or made.moving or enum) and draw.chance(15):
        yield from partitioned(draw, model, made, parts)
        return
    if draw.chance(8) and not (made.moving or draw.several):
        tail, made.stock = "USING heap", True  # on both sides, beside tables of the other kind
    outcome = yield Statement(f"CREATE TABLE {made.name} ({', '.join(parts)}) {tail}".rstrip())
    if outcome.good:
        model.tables.append(made)


def make_key(draw, made, parts):
    """Mostly of one number."""
    form = draw.weighted({"none": 15, "number": 45, "one": 20, "several": 20})
    if form == "none":
        return
    if form == "number":
        made.columns.insert(0, Column("id", TYPES[draw.pick(("int4", "int4", "int8", "int2"))], False))
        parts.insert(0, "id " + made.columns[0].kind.name)
        made.key = ["id"]
    else:
        able = [column.name for column in made.columns if column.kind.key]
        made.key = draw.some(able, *((1, 1) if form == "one" else (2, 3)))
        if not made.key:
            return
    for name in made.key:
        made.column(name).nullable = False
    # Such a key cannot arbitrate on a heap, nor be referred to.
    made.moving = ["id"] if form == "number" and draw.chance(15) else []
    parts.append(f"PRIMARY KEY ({', '.join(made.key)}){' @AT_END@' if made.moving else ''}")


def make_unique(draw, made, parts):
    names = draw.some([column.name for column in made.columns if column.kind.key and column.given
                       and not (made.moving and column.name == "id")], 1, 2)
    if names:
        made.uniques.append(names)
        if not names[1:] and names != made.key and made.column(names[0]).kind.name in ("int4", "int8") and draw.chance(40) \
                and not any(column.identity for column in made.columns):
            made.mirrored = True
            made.moving.append(names[0])
            parts.append(f"UNIQUE ({names[0]}) @AT_END@")
            return
        when = draw.pick(("", "", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"))
        made.mirrored = when != ""
        parts.append(f"UNIQUE {draw.pick(('', '', 'NULLS NOT DISTINCT '))}({', '.join(names)}){when}")


def make_foreign_key(draw, model, made, parts):
    parents = [table for table in model.plain() if len(table.key) == 1 and not table.moving]
    if draw.chance(15) and len(made.key) == 1 and not made.moving:
        parents.append(made)
    if not parents:
        return
    parent = draw.pick(parents)
    kind = parent.column(parent.key[0]).kind
    made.columns.append(Column("parent", kind))
    parts.append(f"parent {kind.name} REFERENCES {parent.name} {draw.pick(ACTIONS)}".rstrip())
    made.parent, made.child_columns = parent.name, ["parent"]


def partitioned(draw, model, made, parts):
    column = made.column(made.key[0])
    made.kind = "partitioned"
    way = "RANGE" if column.kind.family == "int" and draw.chance(60) else "HASH"
    outcome = yield Statement(f"CREATE TABLE {made.name} ({', '.join(parts)}) PARTITION BY {way} ({column.name})")
    if not outcome.good:
        return
    model.tables.append(made)
    bounds = ["FROM (MINVALUE) TO (5)", "FROM (5) TO (12)", draw.pick(("FROM (12) TO (100)",
                                                                      "FROM (12) TO (MAXVALUE)"))]
    if way == "HASH":
        bounds = [f"WITH (modulus 2, remainder {number})" for number in range(2)]
    for number, bound in enumerate(bounds, 1):
        kind = " USING heap" if draw.chance(10) and not draw.several else ""
        yield Statement(f"CREATE TABLE {made.name}p{number} PARTITION OF {made.name} FOR VALUES {bound}{kind}")
    if way == "RANGE" and draw.chance(40):
        yield Statement(f"CREATE TABLE {made.name}p0 PARTITION OF {made.name} DEFAULT")


def index(draw, model):
    """In the model, too, if it is unique or can be dropped."""
    candidates = model.plain()
    if not candidates:
        return
    on = draw.pick(candidates)
    able = [column for column in on.columns if column.kind.key]
    if not able:
        return
    chosen = draw.some(able, 1, 3)
    name, method = model.name("i"), ""
    unique = draw.chance(20) and on.kind == "table" and not on.moving
    if draw.chance(20):
        method, chosen, unique = "USING hash ", chosen[:1], False
    keys = []
    for column in chosen:
        if draw.chance(15):
            keys.append(expression(draw, column))
        else:
            keys.append(column.name)
        if not method and draw.chance(30):
            keys[-1] += draw.pick((" DESC", " NULLS FIRST", " DESC NULLS LAST"))
    text = f"CREATE {'UNIQUE ' if unique else ''}INDEX {name} ON {on.name} {method}({', '.join(keys)})"
    rest = [column.name for column in on.columns if column not in chosen and column.kind.key]
    if rest and not method and draw.chance(12):
        text += f" INCLUDE ({draw.pick(rest)})"
    if unique and draw.chance(30):
        text += " NULLS NOT DISTINCT"
    partial = draw.chance(20)
    if partial:
        text += f" WHERE {condition(draw, references(on), 0)}"
    outcome = yield Statement(text)
    if outcome.good:
        on.indexes.append(name)
        on.indexed.append([column.name for column in chosen])
        if unique:
            on.uniques.append([column.name for column in chosen])
            on.mirrored = True  # not all of them can arbitrate


def expression(draw, column):
    family, name = column.kind.family, column.name
    if family in ("text", "icu"):
        return draw.pick((f"lower({name})", f"length({name})", f"({name} || 'x')"))
    if family in ("int", "small"):
        return f"(({name})::numeric % 5)"
    if family == "jsonb":
        return f"({name} ->> 'a')"
    return f"({name} IS NULL)"


def view(draw, model):
    base = draw.pick(model.plain() or [None])
    if base is None:
        return
    kept = [column for column in base.columns if column.name in base.key or draw.chance(70)] or base.columns[:1]
    names = ", ".join(column.name for column in kept)
    wanted = condition(draw, references(base))
    if draw.chance(40):
        made = Table(model.name("m"), [Column(c.name, c.kind) for c in kept], kind="matview")
        text = f"CREATE MATERIALIZED VIEW {made.name} AS SELECT {names} FROM {base.name} WHERE {wanted}"
    else:
        made = Table(model.name("v"), [Column(c.name, c.kind, c.nullable, c.has_default, c.given) for c in kept],
                     kind="view", uniques=[list(base.keyed)] if base.keyed else [], moving=list(base.moving))
        text = f"CREATE VIEW {made.name} AS SELECT {names} FROM {base.name} WHERE {wanted}"
        if draw.chance(40):
            text += " WITH CHECK OPTION"
    outcome = yield Statement(text)
    if outcome.good:
        model.tables.append(made)


def counting_function(draw, model):
    """A volatile one sees what its statement has written so far, a stable one does not."""
    on = draw.pick(model.plain() or [None])
    if on is None:
        return
    name = model.name("n")
    body = draw.pick((f"LANGUAGE sql {draw.pick(('STABLE', 'VOLATILE'))} AS 'SELECT count(*) FROM {on.name}'",
                      f"LANGUAGE plpgsql {draw.pick(('STABLE', 'VOLATILE'))} AS "
                      f"'BEGIN RETURN (SELECT count(*) FROM {on.name}); END'"))
    outcome = yield Statement(f"CREATE FUNCTION {name}() RETURNS int8 {body}")
    if outcome.good:
        model.functions.append((name, on.name))


def child(draw, model):
    parents = [table for table in model.plain() if table.kind == "table"]
    if not parents:
        return
    parent = draw.pick(parents)
    made = Table(model.name("t"), [Column(c.name, c.kind, c.nullable, c.has_default, c.given) for c in parent.columns],
                 inherited=True)
    outcome = yield Statement(f"CREATE TABLE {made.name} () INHERITS ({parent.name})")
    if outcome.good:
        parent.inherited = True
        model.tables.append(made)
