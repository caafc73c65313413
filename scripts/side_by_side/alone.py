"""One session: a program is drawn statement by statement as both sides answer, or a list of statements is run
again."""

from side_by_side import sides
from side_by_side.draw import Draw
from side_by_side.pair import Difference, Pair
from side_by_side.program import program
from side_by_side.session import Hang
from side_by_side.shrink import shrink
from side_by_side.statement import Statement

STEPS = (8, 30)


class Failed(Exception):
    """A difference, with all that repeats it."""

    def __init__(self, difference, statements, settings, repeated):
        super().__init__(difference.text)
        self.difference = difference
        self.statements = statements
        self.settings = settings
        self.repeated = repeated


class Alone:
    def __init__(self, server, seed, protocol):
        self.server = server
        self.name = f"seed{seed}"
        self.draw = Draw(seed)
        self.settings = sides.settings(self.draw, protocol)

    def _pair(self):
        self.server.make_schema(self.name)
        return Pair(self.server.session("rdmacc", self.name, self.settings),
                    self.server.session("heap", self.name, {}))

    def _finish(self, pair):
        """An open block ends; what was written has to be the same."""
        if pair.theirs.in_block() and not pair.skipping:
            pair.run(Statement("COMMIT"))
        pair.verify()

    def _carry_out(self, feed):
        """Runs what `feed(pair)` runs; (difference or None, pair)."""
        pair = self._pair()
        try:
            feed(pair)
            self._finish(pair)
            return None, pair
        except Difference as difference:
            return difference, pair
        except Hang as hang:
            return Difference("hang", pair.said[-1], str(hang)), pair
        finally:
            pair.ours.close()
            pair.theirs.close()

    def _drawn(self, pair):
        statements = program(self.draw, self.draw.number(*STEPS))
        outcome = None
        while True:
            try:
                outcome = pair.run(statements.send(outcome))
            except StopIteration:
                return

    def run(self):
        """Counts; raises Failed."""
        difference, pair = self._carry_out(self._drawn)
        if difference is None:
            self.server.drop_schema(self.name)
            return pair.counts
        last = [difference]

        def repeats(statements):
            def feed(pair):
                for statement in statements:
                    pair.run(statement)
            found, again = self._carry_out(feed)
            if found is None or found.kind != difference.kind:
                return None
            last[0] = found
            return again.said

        said = pair.said
        repeated = repeats(said)
        if repeated is not None:
            said = shrink(repeated, repeats)
        raise Failed(last[0], said, self.settings, repeated is not None)
