"""Draws a program of one session: a schema, rows, and then statements by themselves and in transaction blocks,
with savepoints, cursors and prepared statements. A generator of statements that gets their outcomes."""

import re

from side_by_side import ddl, schema
from side_by_side.expressions import condition, references
from side_by_side.model import Model
from side_by_side.queries import by_key, query, totally_ordered
from side_by_side.statement import Statement
from side_by_side.writes import assignments, insert, insert_many, key_condition, write

LEVELS = ("", "", "", " ISOLATION LEVEL REPEATABLE READ", " ISOLATION LEVEL SERIALIZABLE", " READ ONLY")
FETCHES = ("FETCH 1", "FETCH 3", "FETCH ALL", "FETCH NEXT", "MOVE 2")
BACKWARD = ("FETCH BACKWARD 2", "FETCH FIRST", "FETCH LAST", "FETCH ABSOLUTE 3", "FETCH RELATIVE -1", "FETCH PRIOR")


class Lost(Exception):
    """The transaction block is gone, for a conflict or a refusal."""


def program(draw, steps):
    model = Model()
    ddl_percent = draw.pick((5, 12, 12, 20, 45))
    yield from schema.schema(draw, model)
    if not model.plain():
        return
    for table in model.plain():
        for draw_rows, percent in ((insert_many, 85), (insert, 80), (insert, 60), (insert_many, 20)):
            if draw.chance(percent):
                yield draw_rows(draw, model, table)
    for _ in range(steps):
        if not model.plain():
            return
        if draw.chance(45):
            yield from block(draw, model, ddl_percent)
        elif draw.chance(10):
            yield from prepared(draw, model)
        else:
            yield from single(draw, model, ddl_percent)


def single(draw, model, ddl_percent, in_block=False):
    if draw.chance(ddl_percent):
        yield from ddl.change(draw, model)
    elif draw.chance(4):
        yield from several(draw, model)
    elif draw.chance(5):
        yield from routine(draw, model, in_block)
    elif draw.chance(50):
        yield query(draw, model)
    else:
        yield write(draw, model)


def block(draw, model, ddl_percent):
    tables = model.snapshot()
    try:
        kept = yield from checked_block(draw, model, ddl_percent)
    except Lost:
        yield Statement("ROLLBACK")  # the sides' own end of it, until which they take nothing
        kept = False
    if not kept:
        model.restore(tables)


def checked_block(draw, model, ddl_percent):
    outcome = yield Statement("BEGIN" + draw.pick(LEVELS))
    if outcome.lost:
        raise Lost
    savepoints = []
    for _ in range(draw.number(1, draw.pick((7, 7, 16)))):
        failed = False
        for statement, reply in observed(step(draw, model, savepoints, ddl_percent)):
            outcome = yield statement
            reply(outcome)
            if outcome.lost:
                raise Lost
            failed = outcome.in_error
        if failed and not (yield from recovered(draw, model, savepoints)):
            return False
    outcome = yield Statement("COMMIT" if draw.chance(78) else "ROLLBACK")
    return outcome.good and outcome.tag == "COMMIT"


def several(draw, model):
    """Statements sent together: one transaction, of which the last one's answer is seen."""
    texts = [write(draw, model).text for _ in range(draw.number(2, 3))]
    if not any(text.startswith("COPY") for text in texts):
        yield Statement("; ".join(texts))


def routine(draw, model, in_block):
    """A DO block: errors that it catches, or transactions within it."""
    texts = []
    while len(texts) < draw.number(2, 4):
        text = write(draw, model).text
        if not re.search(r"^COPY|^WITH| RETURNING ", text):
            texts.append(text + ";")
    form = draw.number(1, 3)
    if form == 1:
        caught = f"BEGIN {texts[0]} {texts[1]} EXCEPTION WHEN OTHERS THEN {draw.pick(texts)} END;"
        yield Statement(f"DO $do$ BEGIN {caught} {' '.join(texts[2:])} END $do$")
    elif form == 2 and not in_block:
        ends = [draw.pick(("", "COMMIT;", "ROLLBACK;")) for _ in texts]
        yield Statement(f"DO $do$ BEGIN {' '.join(text + ' ' + end for text, end in zip(texts, ends))} END $do$")
    else:
        yield from loop(draw, model)


def loop(draw, model):
    """Changes the rows that its query returns, one by one."""
    able = [table for table in model.plain() if table.free and len(table.arbiters) == 1 and not table.inherited]
    if not able:
        return
    table = draw.pick(able)
    names = table.arbiters[0]
    key = " AND ".join(f"{name} = r.{name}" for name in names)
    changed = assignments(draw, draw.some(table.free, 1, 1), references(table))
    act = draw.pick((f"UPDATE {table.name} SET {changed} WHERE {key};", f"DELETE FROM {table.name} WHERE {key};"))
    wanted = condition(draw, references(table))
    guarded = f"BEGIN {act} EXCEPTION WHEN OTHERS THEN NULL; END;" if draw.chance(40) else act
    yield Statement(f"DO $do$ DECLARE r record; BEGIN FOR r IN SELECT {', '.join(names)} FROM {table.name} "
                    f"WHERE {wanted} ORDER BY {', '.join(names)} LOOP {guarded} END LOOP; END $do$")


def observed(statements):
    """(statement, how to answer it) one after the other."""
    answers = [None]
    while True:
        try:
            statement = statements.send(answers[-1])
        except StopIteration:
            return
        yield statement, answers.append


def recovered(draw, model, savepoints):
    """After an error: back to a savepoint, or the block's end."""
    if not savepoints or draw.chance(20):
        if draw.chance(20):
            yield Statement("SELECT 1")
        yield Statement(draw.pick(("ROLLBACK", "COMMIT")))
        return False
    name, tables = savepoints[-1]
    outcome = yield Statement(f"ROLLBACK TO {name}")
    if outcome.lost:
        raise Lost
    model.restore(tables)
    savepoints[-1] = (name, model.snapshot())
    return True


def step(draw, model, savepoints, ddl_percent):
    form = draw.number(1, 100)
    if form <= 12:
        name = f"s{len(savepoints)}"
        outcome = yield Statement(f"SAVEPOINT {name}")
        if outcome.good:
            savepoints.append((name, model.snapshot()))
    elif form <= 20 and savepoints:
        place = draw.number(0, len(savepoints) - 1)
        name, tables = savepoints[place]
        back = draw.chance(60)
        outcome = yield Statement(f"{'ROLLBACK TO' if back else 'RELEASE'} {name}")
        if outcome.good:
            del savepoints[place + 1 if back else place:]
            if back:
                model.restore(tables)
                savepoints[-1] = (name, model.snapshot())
    elif form <= 26:
        yield from cursor(draw, model)
    elif form <= 28 and not any(table.moving for table in model.plain()):
        yield Statement(draw.pick(("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED")))
    elif model.plain():
        yield from single(draw, model, ddl_percent, True)


def cursor(draw, model):
    name = model.name("cur")
    able = [table for table in model.plain() if table.free and table.arbiters and not table.inherited]
    if able and draw.chance(30):
        yield from current_of(draw, name, draw.pick(able), model)
        return
    text, columns = totally_ordered(draw, model)
    scroll = draw.chance(40)
    hold = " WITH HOLD" if draw.chance(20) else ""
    outcome = yield Statement(f"DECLARE {name}{' SCROLL' if scroll else ''} CURSOR{hold} FOR {text}")
    if not outcome.good:
        return
    for _ in range(draw.number(1, 4)):
        if draw.chance(30) and model.plain():
            outcome = yield write(draw, model)
            if not outcome.good:
                return
        fetch = draw.pick(FETCHES + (BACKWARD if scroll else ()))
        outcome = yield Statement(f"{fetch} FROM {name}", columns)
        if not outcome.good:
            return
    if draw.chance(80):
        yield Statement(f"CLOSE {name}")


def current_of(draw, name, table, model):
    columns = ", ".join(column.name for column in table.columns if column.kind.order)
    keys = ", ".join(table.arbiters[0])
    outcome = yield Statement(f"DECLARE {name} CURSOR FOR SELECT {columns} FROM {table.name} "
                              f"WHERE {condition(draw, references(table), 0)} AND ({keys}) IS NOT NULL "
                              f"ORDER BY {keys} FOR UPDATE")
    for _ in range(draw.number(1, 3)):
        if not outcome.good:
            return
        outcome = yield Statement(f"FETCH 1 FROM {name}")
        if not outcome.good or not outcome.rows:
            return
        if draw.chance(60):
            changed = assignments(draw, draw.some(table.free, 1, 2), references(table))
            outcome = yield Statement(f"UPDATE {table.name} SET {changed} WHERE CURRENT OF {name}")
        else:
            outcome = yield Statement(f"DELETE FROM {table.name} WHERE CURRENT OF {name}")
    if outcome.good:
        yield Statement(f"CLOSE {name}")


def prepared(draw, model):
    """A statement with a parameter, run so often that a generic plan may be made."""
    able = [table for table in model.writable() if table.arbiters]
    if not able:
        return
    table = draw.pick(able)
    kind = table.column(table.arbiters[0][0]).kind
    name = model.name("p")
    where = f"{table.arbiters[0][0]} {draw.pick(('=', '=', '>', '<='))} $1"
    form = draw.number(1, 3)
    if form == 1 or not table.free:
        shown = by_key(draw, model).text if draw.chance(20) else \
            f"SELECT {', '.join(c.name for c in table.columns if c.kind.order) or '1'} FROM {table.name}"
        text = shown if " WHERE " in shown else f"{shown} WHERE {where}"
    elif form == 2:
        text = f"UPDATE {table.name} SET {assignments(draw, draw.some(table.free, 1, 2), references(table))} WHERE {where}"
    else:
        text = f"DELETE FROM {table.name} WHERE {where} AND {key_condition(draw, table)}"
    outcome = yield Statement(f"PREPARE {name} ({kind.cast}) AS {text}")
    if not outcome.good:
        return
    generic = draw.chance(60)  # from the first time on
    if generic:
        yield Statement("SET plan_cache_mode = force_generic_plan")
    for _ in range(draw.number(1, 7)):
        yield Statement(f"EXECUTE {name} ({kind.constant(draw)})")
        if draw.chance(8):
            yield from ddl.change(draw, model)
    if generic:
        yield Statement("RESET plan_cache_mode")
    yield Statement(f"DEALLOCATE {name}")
