"""Runs statements on both sides, rdmacc's first, and raises Difference where they do not agree: at once, and by
the whole content of all tables whenever no transaction block is open."""

import collections

from side_by_side import compare, limits
from side_by_side.statement import Outcome, Statement

TABLES = Statement("""SELECT c.relname, c.relkind, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, ', ' ORDER BY a.attnum)
  FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind <> 'c'
  GROUP BY 1, 2 ORDER BY 1""", 1)
SEQUENCES = Statement("SELECT sequencename, last_value FROM pg_sequences "
                      "WHERE schemaname = current_schema() ORDER BY 1")
SOUND = Statement("""SELECT c.oid::regclass::text FROM pg_class c JOIN pg_am a ON a.oid = c.relam
  WHERE c.relnamespace = current_schema()::regnamespace AND a.amname = 'rdmacc' AND c.relkind IN ('r', 'm')""")
TRIES = 6


class Difference(Exception):
    def __init__(self, kind, statement, text):
        super().__init__(text)
        self.kind = kind
        self.statement = statement
        self.text = text


class Pair:
    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs
        self.said = []  # statements that were run
        self.counts = collections.Counter()
        self.skipping = False  # to the end of a block that was lost

    def run(self, statement):
        """heap's outcome."""
        self.said.append(statement)
        if self.skipping:
            self.skipping = statement.text not in ("COMMIT", "ROLLBACK")
            return Outcome(lost=True)
        ours = self._ours(statement)
        if self._lost(ours):
            return self._give_up(statement, ours)
        theirs = self.theirs.run(statement)
        if theirs.in_block and limits.IN_USE in (ours.state, theirs.state) and ours.state != theirs.state:
            return self._give_up(statement, ours)
        self.counts["statements"] += 1
        self.counts["errors"] += bool(ours.state)
        self._judge(statement, ours, theirs)
        if not theirs.in_block:
            self.compare_contents(statement)
        return theirs

    def _ours(self, statement):
        """A statement of its own that loses a conflict is run again."""
        for _ in range(TRIES):
            outcome = self.ours.run(statement)
            if outcome.in_block or outcome.state not in limits.CONFLICTS or statement.text == "COMMIT":
                break
            self.counts["conflicts"] += 1
        return outcome

    def _refused(self, outcome):
        return limits.refused(outcome, self.ours.settings["rdmacc.protocol"])

    def _lost(self, outcome):
        return outcome.state in limits.CONFLICTS or self._refused(outcome)

    def _give_up(self, statement, outcome):
        self.counts["refused" if self._refused(outcome) else "lost"] += 1
        if outcome.in_block:
            self.ours.run(Statement("ROLLBACK"))
        in_block = self.theirs.in_block()
        if in_block:
            self.theirs.run(Statement("ROLLBACK"))
            self.skipping = statement.text != "COMMIT"
        self.compare_contents(statement)
        return Outcome(lost=True, state=outcome.state)

    def _judge(self, statement, ours, theirs):
        found = compare.difference(statement, ours, theirs)
        if found is None and ours.in_block != theirs.in_block:
            found = "block", f"in a transaction block: {ours.in_block} on rdmacc, {theirs.in_block} on heap"
        if found is not None:
            raise Difference(found[0], statement, found[1])

    def _both(self, statement, about):
        ours, theirs = self._ours(statement), self.theirs.run(statement)
        found = compare.difference(statement, ours, theirs)
        if found is not None:
            raise Difference("content " + found[0], about, f"{statement}\n{found[1]}")
        return theirs

    def compare_contents(self, about):
        """And which tables there are."""
        identities = False
        for name, kind, _ in self._both(TABLES, about).rows:
            identities = identities or kind == "S"
            if kind in ("r", "m"):
                self._both(Statement(f'SELECT * FROM ONLY "{name}"' if kind == "r" else f'TABLE "{name}"'), about)
        if identities:
            self._align_sequences()

    def _align_sequences(self):
        """Numbers are lost with attempts that are run again: both go on behind the larger one."""
        ours, theirs = self.ours.run(SEQUENCES).rows or [], self.theirs.run(SEQUENCES).rows or []
        for (name, one), (_, other) in zip(ours, theirs):
            if one != other:
                largest = max(int(one or 1), int(other or 1))
                for session in (self.ours, self.theirs):
                    session.run(Statement(f"SELECT setval('{name}', {largest})"))

    def verify(self):
        """That rdmacc finds its own tables sound."""
        for name, in self.ours.run(SOUND).rows or []:
            statement = Statement(f"SELECT * FROM rdmacc.verify('{name}')")
            outcome = self._ours(statement)
            if outcome.rows or outcome.state:
                raise Difference("verify", statement, f"{outcome.state} {outcome.message}\n{outcome.rows}")
