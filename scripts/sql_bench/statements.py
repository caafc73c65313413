"""Lines that are one statement, timed by psql, out of a file such as large.sql:

    -- group: name of the group
    -- rows: 10                   one row here for 10 of --rows (1 by default)
    -- target: 0.7                of the lines that follow
    -- setup: DROP TABLE …        once for each side, before the first line that is wanted
    -- line: count(*)
    -- before: VACUUM t;          before each round, not timed; may be repeated, as setup may
    SELECT count(*) FROM t;

Variables of psql are :TABLE and :HASHED (sides.py), :rows, :turn (the round, from 0) and :'csv', a path
that the server may write. What a line prints is compared, in any order: both sides have to agree. A line
that begins with SELECT is run several times in a round, and the median counts."""

import os
import re
import statistics
import time

from sql_bench.lines import Line, Sample
from sql_bench.psql import CANCELLED

FOLDER = os.path.dirname(os.path.abspath(__file__))
FILES = ("large.sql", "queries.sql", "writes.sql")
DIRECTIVE = re.compile(r"^-- (group|rows|target|setup|line|before): ?(.*)$")
CONFLICT = "40001"
TRIES_MAX = 10  # a node's own clean-up of deleted rows may win even against a session that is alone
REPEAT_SECONDS = 0.2
REPEATS_MAX = 15
SETUP_GRACE_S = 240  # what comes before a line may load the table anew


class Script:
    """What the lines of a file share."""

    def __init__(self, file, flags):
        self.file = file
        self.flags = flags
        self.group = file
        self.divisor = 1
        self.setup = ""

    @property
    def rows(self):
        return max(100, self.flags.rows // self.divisor)


class Statement(Line):
    unit = "ms"
    by_time = True

    def __init__(self, script, name, target):
        self.script = script
        self.name = name
        self.target = target
        self.before = self.sql = ""

    @property
    def group(self):
        return self.script.group

    def sample(self, side, turn):
        script, limit_s = self.script, self.script.flags.timeout
        error = side.setup(script.file, script.setup, rows=script.rows)
        if error is not None:
            return Sample(refused=f"setup: {error}")
        side.psql.set("rows", script.rows)
        side.psql.set("turn", turn)
        prelude = "RESET ALL;\nSET client_min_messages = warning;\n"
        before, _, _ = until_no_conflict(side, prelude + self.before, limit_s + SETUP_GRACE_S)
        if before.error is not None:
            return Sample(refused=f"before: {before.error}")
        side.psql.run(f"SET statement_timeout = '{limit_s}s';", limit_s)
        return self._timed(side, limit_s)

    def _timed(self, side, limit_s):
        times = []
        end = time.monotonic() + REPEAT_SECONDS
        once = not self.sql.lstrip().upper().startswith("SELECT")
        while not times or not once and len(times) < REPEATS_MAX and time.monotonic() < end:
            answer, spent, lost = until_no_conflict(side, self.sql, limit_s)
            if answer.error is not None:
                if answer.error.state == CANCELLED:
                    return Sample(1000.0 * limit_s, note=f"timeout after {limit_s} s", last=True)
                return Sample(refused=str(answer.error))
            times.append(spent)
        return Sample(statistics.median(times), rows=sorted(answer.rows),
                      counts={"conflicts": lost})


def until_no_conflict(side, sql, limit_s):
    """Answer, time, and conflicts that were lost, whose time counts."""
    spent = 0.0
    for lost in range(TRIES_MAX):
        answer = side.psql.run(sql, limit_s)
        spent += answer.milliseconds
        if answer.error is None or answer.ended:
            break
        side.psql.run("ROLLBACK;", limit_s)
        if answer.error.state != CONFLICT:
            break
    return answer, spent, lost


def read(file, flags):
    """The lines of a file of this folder."""
    script, statements = Script(file, flags), []
    target = 1.0
    with open(os.path.join(FOLDER, file), encoding="utf-8") as text:
        for row in text:
            match = DIRECTIVE.match(row.rstrip("\n"))
            if match is None:
                if statements and not row.startswith("--"):
                    statements[-1].sql += row
                continue
            what, value = match.groups()
            if what == "group":
                script.group = value
            elif what == "rows":
                script.divisor = int(value)
            elif what == "target":
                target = float(value)
            elif what == "setup":
                script.setup += value + "\n"
            elif what == "line":
                statements.append(Statement(script, value, target))
            else:
                statements[-1].before += value + "\n"
    return statements
