#!/usr/bin/env python3
"""What the judge of PostgreSQL's regression tests takes for open, and what it does not."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from pg_suite_choice import CHOICE, ORDER, what_is_open  # noqa: E402


def table(names, *rows):
    lines = [" | ".join(names), "-+-".join("-" * len(name) for name in names)]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(lines + [f"({len(rows)} row{'' if len(rows) == 1 else 's'})"])


ONE, TWO, OTHER = ("1", "a"), ("1", "b"), ("2", "a")
AB = table("xy", ONE, OTHER), table("xy", OTHER, ONE)
TIES = table("xy", ONE, TWO, OTHER), table("xy", TWO, ONE, OTHER)
MOVED = table("xy", ONE, TWO, OTHER), table("xy", ONE, OTHER, TWO)
FIRST = table("xy", ONE), table("xy", OTHER)
BYTES = table("s", ("\\xffaaee",)), table("s", ("\\xaaeeff",))
WORDS = table("s", ("{1,2,3}",)), table("s", ("{3,1,2}",))
GATHER = "create aggregate gather(int) (sfunc = f, stype = int[]);"
TOOK = "create table few as select * from t limit 1;"
CURSOR = "declare c cursor for select * from t;"
IN_ORDER = "declare c cursor for select * from t order by x;"
FIRST_OF = "create function g() returns int as 'select x from t' language sql;"
NUMBERED = "create table log (s text, x serial);"
FUNCTION = "create function f() returns int as $$ select x from t limit 1 $$ language sql;"
RUNNING = (table("xs", ("1", "1"), ("2", "3")), table("xs", ("2", "2"), ("1", "3")))
WRONG = (RUNNING[0], table("xs", ("2", "2"), ("9", "3")))
KEY = tuple(f"ERROR:  no\nDETAIL:  Key (a)=({n}) is not present in table \"t\"." for n in (1, 2))

# Statement, what the script says before it, two answers, what is open.
CASES = (
    ("select * from t", "", AB, ORDER),
    ("select * from t order by x", "", AB, None),
    ("select * from (select * from t order by x) q", "", AB, ORDER),
    ("select 'order by' from t", "", AB, ORDER),
    ("select * from t order by x", "", TIES, ORDER),
    ("select * from t order by 1", "", TIES, ORDER),
    ("select * from t order by t.x desc nulls last", "", TIES, ORDER),
    ("select * from t order by x, y", "", TIES, None),
    ("select * from t order by x + 1", "", TIES, None),
    ("select * from t order by x", "", MOVED, None),
    ("select * from t", "", FIRST, None),
    ("select * from t limit 1", "", FIRST, CHOICE),
    ("select * from t order by x limit 1", "", FIRST, None),
    ("select * from t order by y limit 1", "", FIRST, CHOICE),
    ("select * from t limit 2", "", (FIRST[0], AB[0]), None),
    ("select * from few", TOOK, FIRST, CHOICE),
    ("select * from t", TOOK, FIRST, None),
    ("select * from f()", FUNCTION, FIRST, CHOICE),
    ("select g() xy", FIRST_OF, FIRST, CHOICE),
    ("select g() xy", FIRST_OF.replace("int", "setof int"), FIRST, None),
    ("select * from log", NUMBERED, RUNNING, CHOICE),
    ("fetch 1 from c", CURSOR, FIRST, CHOICE),
    ("fetch 1 from c", IN_ORDER, FIRST, None),
    ("fetch all from c", IN_ORDER, AB, None),
    ("select array_agg(x) s from t", "", WORDS, ORDER),
    ("select string_agg(x, '') s from t", "", BYTES, ORDER),
    ("select gather(x) s from t", GATHER, WORDS, ORDER),
    ("select gather(x) s from t", "", WORDS, None),
    ("select x, sum(x) over (rows 1 preceding) s from t", "", RUNNING, CHOICE),
    ("select x, s from t", "", RUNNING, None),
    ("select x, sum(x) over (rows 1 preceding) s from t", "", WRONG, None),
    ("alter table t add foreign key (a) references p", "", KEY, CHOICE),
    ("update t set x = 1", "", ("NOTICE:  1\nNOTICE:  2", "NOTICE:  2\nNOTICE:  1"), ORDER),
    ("update t set x = 1", "", ("NOTICE:  1\nNOTICE:  2", "NOTICE:  2\nNOTICE:  3"), None),
)


def main():
    failed = 0
    for sql, script, (control, ours), expected in CASES:
        found = what_is_open(sql, script, control, ours)
        if found != expected:
            failed += 1
            print(f"not ok - {sql}: {found}, not {expected}\n{control}\n{ours}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
