#!/usr/bin/env python3
"""What the judge of PostgreSQL's regression tests takes for open, and what it does not."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from pg_suite_allowed import Allowed  # noqa: E402
from pg_suite_choice import CHOICE, ORDER, what_is_open  # noqa: E402
from pg_suite_judge import Difference, join_echoes  # noqa: E402


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
NUMBERED = "create table log (x text, s serial);"
FUNCTION = "create function f() returns int as $$ select x from t limit 1 $$ language sql;"
RUNNING = (table("xs", ("1", "1"), ("2", "3")), table("xs", ("2", "2"), ("1", "3")))
WRONG = (RUNNING[0], table("xs", ("2", "2"), ("9", "3")))
PAIRS = table("xs", ("1", "{1,2}"), ("2", "{3}")), table("xs", ("1", "{2,1}"), ("2", "{3}"))
WRONG_PAIRS = PAIRS[0], table("xs", ("1", "{2,1}"), ("3", "{2}"))
TRADED = table("xs", ("1", "{1,2}"), ("2", "{3}")), table("xs", ("1", "{3}"), ("2", "{1,2}"))
CELLS = table("xs", ("1", "2"), ("3", "4")), table("xs", ("3", "2"), ("1", "4"))
TOLD = tuple(f"NOTICE:  old {a}, {b}\n{answer}" for a, b, answer in zip("12", "21", AB))
TOLD_CELLS = tuple(f"NOTICE:  one\n{answer}" for answer in CELLS)
PLAN = tuple("QUERY PLAN\n----\n " + lines for lines in ("Sort\n Scan", "Scan\n Sort"))
RECORDS = tuple(f"-[ RECORD 1 ]\nx | 1\ny | {a}\n-[ RECORD 2 ]\nx | 2\ny | {b}" for a, b in ("ab", "ba"))
LONG = (table("s", ("a+",), ("b ",), ("c+",), ("d ",)).replace("4 rows", "2 rows").replace("-", "--"),
        table("s", ("a+",), ("d ",), ("c+",), ("b ",)).replace("4 rows", "2 rows").replace("-", "--"))
THEN_MORE = tuple(f"{answer}\n\n{AB[0]}" for answer in AB)
THEN_ORDER = tuple(f"{AB[0]}\n\n{answer}" for answer in AB)


def xml(*rows):
    """As psql prints a value of several lines."""
    lines = [f" {text:<18}+" for row in rows for text in ("", "<row>", *row, "</row>")]
    return "\n".join(["x", "-" * 20, " " + "<t>".ljust(18) + "+", *lines,
                      " ".ljust(19) + "+", " </t>", "(1 row)"])


XML = xml(("<a>1</a>", "<b>1</b>"), ("<a>2</a>",)), xml(("<a>2</a>",), ("<a>1</a>", "<b>1</b>"))
WRONG_XML = XML[0], xml(("<a>2</a>", "<b>1</b>"), ("<a>1</a>",))
TOP = (table("xy", ONE, TWO, OTHER), table("xy", ONE, TWO, ("2", "c")))
WRONG_TOP = TOP[0], table("xy", ONE, ("1", "c"), ("2", "c"))
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
    ("select g() xy", FIRST_OF, FIRST, None),
    ("select * from log", NUMBERED, RUNNING, CHOICE),
    ("select * from log", NUMBERED, WRONG, None),
    ("select * from log", "create table log (x serial, s int);", RUNNING, None),
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
    ("update t set x = 1 returning *", "", TOLD, ORDER),
    ("update t set x = 1 returning *", "", TOLD_CELLS, None),
    ("update t set x = 1", "", ("NOTICE:  old (1,a), (1,b)", "NOTICE:  old (1,b), (1,a)"), ORDER),
    ("update t set x = 1", "", ("NOTICE:  old (1,a), (2,b)", "NOTICE:  old (1,b), (2,a)"), None),
    ("update t set x = 1", "", ("NOTICE:  x = 1, y = 2", "NOTICE:  x = 2, y = 1"), None),
    ("update t set x = 1", "", ("NOTICE:  old 1=1,2=2, new 3", "NOTICE:  old 2=2,1=1, new 3"), ORDER),
    ("update t set x = 1", "", ("NOTICE:  old 1, 2, new 3, 4", "NOTICE:  old 3, 4, new 1, 2"), None),
    # What aggregates gather.
    ("select x, array_agg(y) from t group by x order by x", "", PAIRS, ORDER),
    ("select x, array_agg(y order by y) from t group by x order by x", "", PAIRS, None),
    ("select x, array_agg(y order by y) from t group by x order by x", "", WRONG_PAIRS, None),
    ("select x, array_agg(y) from t group by x order by x", "", WRONG_PAIRS, None),
    ("select x, array_agg(y) from t group by x", "", TRADED, None),
    ("select x, (select array_agg(y) from t) from t order by x", "", WRONG_PAIRS, None),
    ("select x, gather(y) s from t group by x", GATHER, WRONG_PAIRS, None),
    ("select table_to_xml('t')", "", XML, ORDER),
    ("select query_to_xml('select * from t')", "", XML, ORDER),
    ("select query_to_xml('select * from t order by x')", "", XML, None),
    ("select table_to_xml('t')", "", WRONG_XML, None),
    # Several statements in a line.
    ("update t set x = 1 returning *; select * from u", "", THEN_MORE, ORDER),
    ("select * from u; select * from t", "", THEN_ORDER, None),
    # What no rows are.
    ("explain select * from t", "", PLAN, None),
    ("select * from t", "", RECORDS, None),
    ("select * from t", "", LONG, None),
    ("select * from t", "", CELLS, None),
    ("copy t to stdout", "", ("1\n2", "2\n1"), ORDER),
    ("copy (select * from t order by x) to stdout", "", ("1\n2", "2\n1"), None),
    # Which rows are taken.
    ("select * from t order by x limit 3", "", TOP, CHOICE),
    ("select * from t order by x limit 3", "", WRONG_TOP, None),
    ("select * from t order by x limit 3 offset 1", "", WRONG_TOP, CHOICE),
    ("select distinct on (x) * from t order by x", "", TOP, None),
    ("fetch 3 from c; -- of them", IN_ORDER, TOP, CHOICE),
    ("fetch 1 from c; -- of them", IN_ORDER, FIRST, None),
    ("select * from few", TOOK + "drop table few; create table few (x int);", FIRST, None),
    ("select * from g() xy", FIRST_OF.replace("x from t", "max(x) from t"), FIRST, None),
    # What a window gives.
    ("select x, sum(x) over () s from t", "", RUNNING, None),
    ("select x, sum(x) over (order by x) s from t", "", RUNNING, None),
    ("select x, rank() over () s from t", "", RUNNING, None),
    ("select x, lag(x) over () s from t", "", RUNNING, CHOICE),
    ("select x, first_value(x) over w s from t window w as (order by y)", "", RUNNING, CHOICE),
    ("select sum(x) over (rows 1 preceding) x, y s from t", "", RUNNING, None),
    ("select x, y s, sum(x) over (rows 1 preceding) from t", "", RUNNING, None),
    # Which row an error names.
    ("insert into t select 1", "", (KEY[0], KEY[1].replace("(a)", "(b)")), None),
    ("insert into t select 1", "", (KEY[0], KEY[1].replace("(2)", "(2, 3)")), None),
)


# Two differences in a row: statements, the control's answers, ours, whether they are one of order.
HEAD = "x\n-\n"
JOINED = (
    (("select x from t", "a row"), (HEAD + "1\n2", "3\n(3 rows)"), (HEAD + "3", "2\n1\n(3 rows)"), True),
    (("select x from t order by x", "a row"),
     (HEAD + "1\n2", "3\n(3 rows)"), (HEAD + "3", "2\n1\n(3 rows)"), False),
    (("select x from t order by x", "a row"),
     (HEAD + "1\n2", "3\n(3 rows)"), (HEAD + "1", "2\n3\n(3 rows)"), True),
    (("select x from t order by x", "select x from u order by x"),
     (table("x", "1", "2"), table("x", "3", "4")), (table("x", "2", "1"), table("x", "4", "3")), False),
    (("select x from t", "select x from u"),
     (table("x", "1"), table("x", "2")), (table("x", "2"), table("x", "1")), False),
    (("select x from t", "select x from u"),
     (table("x", "1"), "ERROR:  no"), ("ERROR:  no", table("x", "1")), False),
)
XACTTEST = [("0", "0.09561"), ("787", "7.8"), ("797", "99.097"), ("807", "324.78"), ("817", "777.777")]
TRADED_XACTTEST = XACTTEST[:2] + [("797", "324.78"), ("807", "99.097")] + XACTTEST[4:]
EXCEPT = "(select * from agg_hash_4 except select * from agg_group_4)"
EXCEPT_NAMES = "c1", "c2", "c3"
LETTERS = [table("x", (word,)) for word in ("abc", "ABC", "abd")]


def padded(rows, names="ab"):
    """As psql prints numbers, in columns of eight characters."""
    lines = [" " + " | ".join(f"{cell:>8}" for cell in row) for row in [tuple(names), *rows]]
    return "\n".join([lines[0], "+".join("-" * 10 for _ in names), *lines[1:], f"({len(rows)} rows)"])


# File, statement, two answers: does a rule of allowed.txt take them?
ALLOWED = (
    ("transactions", "select * from xacttest;", padded(XACTTEST), padded(TRADED_XACTTEST), True),
    ("transactions", "select * from xacttest;", padded(XACTTEST), padded(XACTTEST[:4]), False),
    ("transactions", "select * from xacttest;", padded(XACTTEST),
     padded([("0", "7.8"), ("787", "0.09561"), *XACTTEST[2:]]), False),
    ("transactions", "select a from xacttest where a > 800;", padded(XACTTEST), padded(XACTTEST), False),
    ("collate.icu.utf8", "SELECT DISTINCT x FROM test3ci;", LETTERS[0], LETTERS[1], True),
    ("collate.icu.utf8", "SELECT DISTINCT x FROM test3ci;", LETTERS[0], LETTERS[2], False),
    ("aggregates", EXCEPT, padded([], EXCEPT_NAMES),
     padded([("1", "{2,1}", "2"), ("3", "{4,5}", "2")], EXCEPT_NAMES), True),
    ("aggregates", EXCEPT, padded([], EXCEPT_NAMES), padded([("1", "{2,1}", "3")], EXCEPT_NAMES), False),
)


def failures():
    for sql, script, (control, ours), expected in CASES:
        found = what_is_open(sql, script, control, ours)
        if found != expected:
            yield f"{sql}: {found}, not {expected}\n{control}\n{ours}"
    for statements, control, ours, expected in JOINED:
        before, after = (Difference("f", place, *texts, None) for place, texts in
                         enumerate(zip(statements, control, ours)))
        join_echoes(before, after)
        if (before.open == ORDER) != expected or before.open != after.open:
            yield f"{statements}: joined as {before.open}\n{control}\n{ours}"
    rules = Allowed(os.path.join(ROOT, "tests/pg_suite/allowed.txt"))
    for file, sql, control, ours, expected in ALLOWED:
        (_, rule, _), = rules.judge([Difference(file, 1, sql, control, ours, None)])
        if (rule is not None) != expected:
            yield f"{file}: {sql} taken by {rule and rule.pattern}\n{control}\n{ours}"


def main():
    failed = list(failures())
    for failure in failed:
        print("not ok - " + failure)
    print(f"{len(CASES) + len(JOINED) + len(ALLOWED) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
