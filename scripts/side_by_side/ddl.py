"""Draws what changes tables that have rows, and brings the model along when it has succeeded."""

from side_by_side import column_types, schema
from side_by_side.column_types import TYPES
from side_by_side.expressions import condition, references
from side_by_side.model import Column
from side_by_side.statement import Statement

CASTS = {"int2": ("int4", "int8", "numeric"), "int4": ("int8", "numeric", "text"), "int8": ("numeric", "text"),
         "varchar(20)": ("text",), "text": ("varchar",), "numeric(8,2)": ("numeric", "text"),
         "date": ("timestamp", "timestamptz", "text"), "float4": ("float8",), "char(6)": ("text",)}


def change(draw, model):
    """A generator of statements, as those of schema.py."""
    if not model.plain():
        return
    yield from draw.weighted(KINDS)(draw, model)


def add_column(draw, model):
    table = draw.pick(model.plain())
    column = Column(model.name("a"), column_types.drawn(draw), has_default=draw.chance(50))
    column.nullable = not column.has_default or draw.chance(60)
    outcome = yield Statement(f"ALTER TABLE {table.name} ADD COLUMN {schema.definition(draw, column)}", settled=True)
    if outcome.good:
        table.columns.append(column)
        if table.inherited:  # a child has it, too; which table that is the model does not say
            table.columns.remove(column)


def drop_column(draw, model):
    table = draw.pick(model.plain())
    able = [column for column in table.columns if column.name not in table.key and column.name != "parent"]
    if len(able) < 2 or table.inherited:
        return
    column = draw.pick(able)
    outcome = yield Statement(f"ALTER TABLE {table.name} DROP COLUMN {column.name}", settled=True)
    if outcome.good:
        table.columns.remove(column)
        table.uniques = [names for names in table.uniques if column.name not in names]
        table.indexed = [names for names in table.indexed if column.name not in names]
        table.moving = [name for name in table.moving if name != column.name]


def change_type(draw, model):
    table = draw.pick(model.plain())
    # A heap's cascade says that a wider key does not fit before it looks whether there is a child.
    referenced = table.key if any(other.parent == table.name for other in model.tables) else []
    able = [column for column in table.columns if column.kind.name in CASTS and column.name not in referenced]
    if not able or table.inherited:
        return
    column = draw.pick(able)
    new = draw.pick(CASTS[column.kind.name])
    kind = TYPES.get(new) or TYPES["varchar"]
    using = f" USING {column.name}::{new}" if new == "text" else ""
    outcome = yield Statement(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} TYPE {kind.name}{using}")
    if outcome.good:
        column.kind = kind


def constrain(draw, model):
    table = draw.pick(model.plain())
    column = draw.pick(table.columns)
    form = draw.number(1, 6)
    name = model.name("k")
    if form == 1:
        outcome = yield Statement(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} SET NOT NULL")
        if outcome.good:
            column.nullable = False
    elif form == 2 and column.name not in table.key:
        outcome = yield Statement(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} DROP NOT NULL")
        if outcome.good:
            column.nullable = True
    elif form == 3:
        valid = draw.pick(("", "", " NOT VALID"))
        outcome = yield Statement(f"ALTER TABLE {table.name} ADD CONSTRAINT {name} CHECK "
                                  f"({condition(draw, references(table))}){valid}")
        if outcome.good:
            table.constraints.append(name)
    elif form == 4 and column.given:
        outcome = yield Statement(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} SET DEFAULT "
                                  f"{column.kind.constant(draw)}")
        column.has_default = column.has_default or outcome.good
    elif form == 5 and column.kind.key and table.kind == "table" and not table.moving:
        when = draw.pick(("", "", " DEFERRABLE INITIALLY DEFERRED"))
        outcome = yield Statement(f"ALTER TABLE {table.name} ADD CONSTRAINT {name} UNIQUE ({column.name}){when}")
        if outcome.good:
            table.uniques.append([column.name])
            table.constraints.append(name)
            table.mirrored = table.mirrored or bool(when)
    elif table.constraints:
        name = draw.pick(table.constraints)
        outcome = yield Statement(f"ALTER TABLE {table.name} DROP CONSTRAINT {name}")
        if outcome.good:
            table.constraints.remove(name)
            # Its columns may still be in another one; to hold them for unique costs nothing.
            table.mirrored = True


def change_key(draw, model):
    """Takes a primary key away, or gives one to a table that has none."""
    table = draw.pick(model.plain())
    if table.moving or table.inherited or table.kind != "table":
        return
    if table.key:
        outcome = yield Statement(f"ALTER TABLE {table.name} DROP CONSTRAINT {table.name}_pkey")
        if outcome.good:
            table.key = []
        return
    able = [column.name for column in table.columns if column.kind.key]
    names = draw.some(able, 1, 2)
    if names:
        outcome = yield Statement(f"ALTER TABLE {table.name} ADD PRIMARY KEY ({', '.join(names)})")
        if outcome.good:
            table.key = names
            for name in names:
                table.column(name).nullable = False


def rename(draw, model):
    table = draw.pick(model.plain())
    able = [column for column in table.columns if column.name not in ("id", "parent", "g")]
    if table.inherited or not able:
        return
    column, new = draw.pick(able), model.name("r")
    outcome = yield Statement(f"ALTER TABLE {table.name} RENAME COLUMN {column.name} TO {new}")
    if outcome.good:
        for names in (table.key, table.moving, *table.uniques, *table.indexed):
            names[:] = [new if name == column.name else name for name in names]
        column.name = new


def detach(draw, model):
    """A partition becomes a table, and may come back where its rows allow it."""
    able = [table for table in model.plain() if table.kind == "partitioned"]
    if not able:
        return
    table = draw.pick(able)
    part = f"{table.name}p{draw.number(1, 2)}"
    outcome = yield Statement(f"ALTER TABLE {table.name} DETACH PARTITION {part}")
    if outcome.good and draw.chance(70):
        yield Statement(f"ALTER TABLE {table.name} ATTACH PARTITION {part} "
                        f"{draw.pick(('DEFAULT', 'FOR VALUES FROM (MINVALUE) TO (12)', 'FOR VALUES FROM (5) TO (12)'))}")


def drop_index(draw, model):
    able = [table for table in model.plain() if table.indexes]
    if not able:
        return
    table = draw.pick(able)
    name = draw.pick(table.indexes)
    outcome = yield Statement(f"DROP INDEX {name}")
    if outcome.good:
        table.indexes.remove(name)
        table.mirrored = True


def rewrite(draw, model):
    table = draw.pick(model.plain())
    alter = f"ALTER TABLE {table.name} SET"
    ways = [f"VACUUM FULL {table.name}", f"ANALYZE {table.name}", f"VACUUM {table.name}", f"REINDEX TABLE {table.name}",
            f"{alter} ACCESS METHOD @ACCESS@"]
    if table.kind == "table" and not table.stock:
        ways.append(f"{alter} @OPTION@")
    if not table.moving:
        ways.append(f"{alter} ACCESS METHOD heap")
    way = draw.pick(ways)
    outcome = yield Statement(way)
    if outcome.good and " ACCESS METHOD " in way:
        table.stock = way.endswith("heap")


def refresh(draw, model):
    able = [table for table in model.tables if table.kind == "matview"]
    if able:
        yield Statement(f"REFRESH MATERIALIZED VIEW {draw.pick(able).name}")


def create_as(draw, model):
    """A copy of a table, with rows and all, or with no more than its form."""
    source = draw.pick(model.readable())
    made = model.name("t")
    names = ", ".join(column.name for column in source.columns)
    outcome = yield Statement(f"CREATE TABLE {made} AS SELECT {names} FROM {source.name} "
                              f"WHERE {condition(draw, references(source))}")
    if not outcome.good:
        return
    table = type(source)(made, [Column(column.name, column.kind) for column in source.columns])
    model.tables.append(table)
    if source.key and draw.chance(40):
        outcome = yield Statement(f"ALTER TABLE {made} ADD PRIMARY KEY ({', '.join(source.key)})")
        if outcome.good:
            table.key = list(source.key)
            for name in table.key:
                table.column(name).nullable = False


def drop_table(draw, model):
    """Only where enough are left."""
    if len(model.plain()) < 3:
        return
    table = draw.pick(model.plain())
    outcome = yield Statement(f"DROP TABLE {table.name}")
    if outcome.good:
        model.tables.remove(table)


def new_table(draw, model):
    if len(model.tables) < 6:
        yield from schema.table(draw, model)


KINDS = {add_column: 16, drop_column: 8, change_type: 10, constrain: 20, schema.index: 16, drop_index: 6, rewrite: 14,
         change_key: 6, rename: 3, detach: 4, refresh: 10, create_as: 5, drop_table: 3, new_table: 6}
