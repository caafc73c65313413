"""Compares two runs of PostgreSQL's regression tests statement by statement. What psql printed after
a line of a test, up to the test's next line, is that line's answer; a line whose two answers differ
is a difference."""

import collections
import hashlib
import re
import subprocess

from pg_suite_choice import ORDER, what_is_open
from pg_suite_order import END_OF_TABLE, PLAN, RULE_OF_TABLE, lines_of
from pg_suite_sql import order_of

ERROR = re.compile(r"^(?:psql:.*?: )?ERROR:  (.*)$", re.M)
# What two runs of one server may print differently, too.
VOLATILE = ((re.compile(r"\b\d{5,}\b"), "N"), (re.compile(r"[ \t]+"), " "), (re.compile(r"-{4,}"), "-"))
KEY_DIGITS = 12
ECHOES_MAX = 3
STATEMENT_END = re.compile(r";\s*(--.*)?$|^\s*(--|\\)|^\s*$")


class Difference:
    """The line `line` of a test has two answers; `open` says whether in nothing but what SQL leaves
    open (pg_suite_choice.py)."""

    def __init__(self, file, line, sql, control, ours, is_open):
        self.file = file
        self.line = line
        self.sql = sql
        self.control = control
        self.ours = ours
        self.open = is_open
        self.errors = ERROR.findall(ours)
        self.control_errors = ERROR.findall(control)
        self.kind = self._kind()
        self.key = hashlib.sha256("\0".join(
            [file, sql, normalised(control), normalised(ours)]).encode()).hexdigest()[:KEY_DIGITS]

    def _kind(self):
        if PLAN in self.control or PLAN in self.ours:
            return "plan"
        if set(self.errors) - set(self.control_errors):
            return "error: " + re.sub(r'"[^"]*"', '"…"', self.errors[0])
        if set(self.control_errors) - set(self.errors):
            return "no error: " + re.sub(r'"[^"]*"', '"…"', self.control_errors[0])
        if lines_of(self.control) == lines_of(self.ours):
            return "order of rows"
        return "other"


def normalised(text):
    for pattern, replacement in VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def answers(script, output):
    """{line of the script: what was printed after it}, by the longest common subsequence of both:
    psql echoes the script, all but empty lines and what COPY reads."""
    listed = subprocess.run(
        ["diff", "--old-line-format=O\n", "--unchanged-line-format=E\n",
         "--new-line-format=N%L", script, output],
        stdout=subprocess.PIPE, check=False).stdout.decode(errors="replace")
    found = collections.defaultdict(list)
    number = echoed = 0
    for line in listed.split("\n"):
        if line[:1] == "N":
            found[echoed].append(line[1:])
        elif line:
            number += 1
            echoed = number if line == "E" else echoed
    # An echo that met the wrong one of two equal lines is no answer.
    with open(script, errors="replace") as file:
        echoes = set(file.read().split("\n")) - {""}
    stripped = ((number, "\n".join(line for line in lines if line not in echoes).strip("\n"))
                for number, lines in found.items())
    return {number: text for number, text in stripped if text}


def statement_at(lines, number):
    """The statement that ends in this line, as far as layout tells, on one line."""
    while number > 0 and not lines[number - 1].strip():
        number -= 1  # psql does not echo empty lines: an answer's own may stand for one
    start = max(number - 1, 0)
    while start > 0 and not STATEMENT_END.search(lines[start - 1]):
        start -= 1
    return " ".join(line.strip() for line in lines[start:number])


def is_cut(before, after):
    """Is the first part the start of a table, and the second the rest of it?"""
    starts, ends = before.strip("\n").split("\n"), after.strip("\n").split("\n")
    return (len(starts) > 1 and bool(RULE_OF_TABLE.match(starts[1].strip()))
            and not END_OF_TABLE.match(starts[-1]) and bool(END_OF_TABLE.match(ends[-1]))
            and not (len(ends) > 1 and RULE_OF_TABLE.match(ends[1].strip())))


def join_echoes(before, after):
    """A row that looks like a line of the script parts one answer in two: both are one."""
    if before.open or after.open or after.line - before.line > ECHOES_MAX:
        return
    if "plan" in (before.kind, after.kind):
        return
    if not (is_cut(before.control, after.control) or is_cut(before.ours, after.ours)):
        return
    control, ours = (one + "\n" + other for one, other in
                     ((before.control, after.control), (before.ours, after.ours)))
    if order_of(before.sql) or order_of(after.sql):
        same = control.split("\n") == ours.split("\n")
    else:
        same = lines_of(control) == lines_of(ours)
    if same:
        before.open = after.open = ORDER


def differences(name, script, control, ours):
    """In the order of the script, whose two outputs are in the files `control` and `ours`."""
    with open(script, errors="replace") as file:
        lines = file.read().split("\n")
    first, second = answers(script, control), answers(script, ours)
    found = []
    for number in sorted(first.keys() | second.keys()):
        one, other = first.get(number, ""), second.get(number, "")
        if one == other:
            continue
        sql = statement_at(lines, number)
        found.append(Difference(name, number, sql, one, other, what_is_open(
            sql, "\n".join(lines[:number]), one, other)))
    for before, after in zip(found, found[1:]):
        join_echoes(before, after)
    return found
