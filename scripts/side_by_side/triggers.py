"""Draws triggers: some note what happens in a table of their own, some change or drop the row."""

from side_by_side.column_types import TEXT
from side_by_side.expressions import condition, references
from side_by_side.model import Column, Table
from side_by_side.statement import Statement

EVENTS = ("INSERT", "UPDATE", "DELETE", "INSERT OR UPDATE", "INSERT OR UPDATE OR DELETE", "UPDATE OR DELETE")


def function(name, body):
    return Statement(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$")


def trigger(draw, model):
    candidates = [table for table in model.plain() if not table.name.startswith("log")]
    if not candidates:
        return
    on = draw.pick(candidates)
    form = draw.weighted({"note": 4, "count": 3, "watch": 3, "change": 3, "guard": 2})
    if form in ("note", "count", "watch") and model.find("log") is None:
        outcome = yield Statement("CREATE TABLE log (event text, old_row text, new_row text)")
        if not outcome.good:
            return
        model.tables.append(Table("log", [Column(name, TEXT) for name in ("event", "old_row", "new_row")]))
    name = model.name("f")
    if form == "note":
        yield function(name, "INSERT INTO log VALUES (TG_OP || TG_WHEN, OLD::text, NEW::text); RETURN NULL;")
        deferred = draw.chance(25)
        kind = "CONSTRAINT TRIGGER" if deferred else "TRIGGER"
        tail = "DEFERRABLE INITIALLY DEFERRED " if deferred else ""
        when = " WHEN (pg_trigger_depth() < 3)"
        yield Statement(f"CREATE {kind} {name} AFTER {draw.pick(EVENTS)} ON {on.name} {tail}FOR EACH ROW{when} "
                        f"EXECUTE FUNCTION {name}()")
    elif form == "count":
        event, rows = draw.pick((("INSERT", "NEW"), ("DELETE", "OLD"), ("UPDATE", "NEW"), ("UPDATE", "OLD")))
        yield function(name, "INSERT INTO log SELECT TG_OP, count(*)::text, NULL FROM changed; RETURN NULL;")
        yield Statement(f"CREATE TRIGGER {name} AFTER {event} ON {on.name} REFERENCING {rows} TABLE AS changed "
                        f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()")
    elif form == "watch":
        # Whether the statement's other rows are seen: each trigger sees one more or less, in any order.
        yield function(name, "INSERT INTO log SELECT TG_OP || TG_WHEN, count(*)::text, NULL "
                             f"FROM {on.name}; RETURN coalesce(NEW, OLD);")
        event = draw.pick(EVENTS[:3])
        on.watched = True
        yield Statement(f"CREATE TRIGGER {name} {draw.pick(('BEFORE', 'BEFORE', 'AFTER'))} {event} ON {on.name} "
                        f"FOR EACH ROW EXECUTE FUNCTION {name}()")
    elif form == "change" and on.free:
        column = draw.pick(on.free)
        yield function(name, f"NEW.{column.name} := {column.kind.constant(draw)}; RETURN NEW;")
        when = condition(draw, [reference for reference in references(on, "NEW")
                                if reference.text != "NEW.g"], 0)
        yield Statement(f"CREATE TRIGGER {name} BEFORE INSERT OR UPDATE ON {on.name} FOR EACH ROW "
                        f"WHEN ({when}) EXECUTE FUNCTION {name}()")
    else:
        wanted = condition(draw, references(on, "OLD"), 0)
        act = draw.pick(("RETURN NULL;", "RAISE EXCEPTION 'guarded';"))
        yield function(name, f"IF {wanted} THEN {act} END IF; RETURN OLD;")
        yield Statement(f"CREATE TRIGGER {name} BEFORE DELETE ON {on.name} FOR EACH ROW "
                        f"EXECUTE FUNCTION {name}()")
