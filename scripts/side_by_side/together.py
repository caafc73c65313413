"""Several sessions: batches of transactions that are under way at a time on rdmacc, each of which has to be
explained by an order of them on the heap (serial.py)."""

import collections
import re

from side_by_side import schema, sides
from side_by_side.draw import Draw
from side_by_side.model import Model
from side_by_side.pair import TABLES, Difference, Pair
from side_by_side.queries import by_key, query
from side_by_side.schedule import ENDS, Schedule, items, transaction_of
from side_by_side.serial import Serial, Undecided
from side_by_side.session import Hang
from side_by_side.shrink import shrink
from side_by_side.statement import Statement
from side_by_side.writes import insert, insert_many, write

BATCHES = (3, 8)
SESSIONS = (2, 4)
TRANSACTIONS_MAX = 8


class FailedTogether(Exception):
    """A batch that no order explains, with all that repeats it."""

    def __init__(self, kind, text, before, batch, settings, repeated):
        super().__init__(text)
        self.kind, self.text = kind, text
        self.before, self.batch = before, batch
        self.settings, self.repeated = settings, repeated


def drawn_statement(draw, model):
    while True:
        kind = draw.weighted({"key": 3, "query": 2, "write": 5, "insert": 1})
        if kind == "key":
            statement = by_key(draw, model)
        elif kind == "query":
            statement = query(draw, model)
        else:
            statement = write(draw, model) if kind == "write" else insert(draw, model)
        # A scan that skips is no part of any order; COPY and many rows make batches slow, not harder.
        if not re.search(r"SKIP LOCKED|NOWAIT|^TRUNCATE|^COPY|generate_series", statement.text):
            return statement


def drawn_transactions(draw, model, sessions):
    made = []
    for number in range(draw.number(sessions, TRANSACTIONS_MAX)):
        statements = [drawn_statement(draw, model) for _ in range(draw.weighted({1: 3, 2: 4, 3: 3, 4: 1}))]
        if len(statements) > 1 or draw.chance(50):
            if draw.chance(15):
                place = draw.number(0, len(statements) - 1)
                # Of a name that no other has: on the heap all are parts of one.
                statements.insert(place, Statement(f"SAVEPOINT s{number}"))
                statements.insert(draw.number(place + 1, len(statements)), Statement(f"ROLLBACK TO s{number}"))
            statements.append(Statement("COMMIT" if draw.chance(90) else "ROLLBACK"))
        made.append(transaction_of(number, number % sessions, statements))
    return made


class Together:
    def __init__(self, server, seed, protocol):
        self.server = server
        self.protocol = protocol
        self.name = f"seed{seed}"
        self.draw = Draw(seed, several=True)
        self.settings = {**sides.settings(self.draw, protocol), "default_transaction_isolation": "serializable"}
        self.counts = collections.Counter()

    def _session(self, side):
        return self.server.session(side, self.name, self.settings if side == "rdmacc" else {})

    def _set_up(self, pair):
        model = Model()
        statements = schema.schema(self.draw, model)
        outcome = None
        while True:
            try:
                outcome = pair.run(self._plain(statements.send(outcome)))
            except StopIteration:
                break
        for table in model.plain():
            pair.run(insert(self.draw, model, table))
            if self.draw.chance(40):
                pair.run(insert_many(self.draw, model, table))
        return model

    @staticmethod
    def _plain(statement):
        """Constraints that wait for COMMIT would be judged at another moment on the heap."""
        statement.text = re.sub(r"DEFERRABLE( INITIALLY DEFERRED)?", "", statement.text)
        return statement

    def run(self):
        self.server.make_schema(self.name)
        pair = Pair(self._session("rdmacc"), self._session("heap"))
        sessions = [self._session("rdmacc") for _ in range(self.draw.number(*SESSIONS))]
        try:
            model = self._set_up(pair)
            if not model.plain():
                return self.counts
            for _ in range(self.draw.number(*BATCHES)):
                transactions = drawn_transactions(self.draw, model, len(sessions))
                order = items(transactions, self.draw)
                before = list(pair.said)
                found = self._batch(pair, sessions, transactions, order)
                if isinstance(found, tuple):
                    self._report(found, before, transactions, order, len(sessions))
                pair.said += [statement for one in found if not one.failed
                              for statement, _ in one.answers]
            pair.verify()
            self.server.drop_schema(self.name)
        except Undecided:
            self.counts["undecided"] += 1
        except Difference as difference:
            raise FailedTogether(difference.kind, difference.text, pair.said, [], self.settings, True) from difference
        finally:
            for session in (*sessions, pair.ours, pair.theirs):
                session.close()
        return self.counts + pair.counts

    def _batch(self, pair, sessions, transactions, order):
        """The transactions in an order that explains them, or (kind, text)."""
        for one in transactions:
            one.answers, one.begin, one.end = [], None, None
        try:
            Schedule(sessions, transactions).run(order)
        except Hang as hang:
            return "hang", str(hang)
        counting = [one for one in transactions if one.counts]
        self.counts["transactions"] += len(counting)
        self.counts["lost"] += sum(one.lost for one in transactions)
        contents = self._contents(pair)
        unread = [f"{statement}: {outcome.state} {outcome.message}" for statement, outcome in contents if outcome.state]
        if unread:
            return "unread", "; ".join(unread)
        serial = Serial(pair.theirs, self.protocol, contents)
        found = serial.explain(counting)
        return ("order", f"no order explains it; {serial.nearest[1]}") if found is None else found

    @staticmethod
    def _contents(pair):
        """[(statement, outcome)], on rdmacc."""
        tables = pair.ours.run(TABLES)
        statements = [Statement(f'SELECT * FROM ONLY "{name}"') for name, kind, _ in tables.rows or []
                      if kind in ("r", "m")]
        return [(TABLES, tables), *((statement, pair.ours.run(statement)) for statement in statements)]

    @staticmethod
    def _shortened(order, fails):
        """Without whole transactions, and then without statements of them that are not their ends."""
        def without_transactions(kept):
            return kept if fails([item for item in order if item[0] in kept]) else None

        kept = shrink(sorted({number for number, _ in order}), without_transactions)
        order = [item for item in order if item[0] in kept]

        def chosen(places):
            return [item for place, item in enumerate(order) if place in places or item[1].text in ENDS]

        places = shrink(list(range(len(order))), lambda places: places if fails(chosen(places)) else None)
        return chosen(places)

    def _report(self, found, before, transactions, order, sessions):
        """Shortens the batch, then what came before it; raises FailedTogether."""
        last = [found]

        def again(statements, chosen):
            self.server.make_schema(self.name)
            pair = Pair(self._session("rdmacc"), self._session("heap"))
            others = [self._session("rdmacc") for _ in range(sessions)]
            try:
                for statement in statements:
                    pair.run(statement)
                now = self._batch(pair, others, transactions, chosen)
            except (Difference, Undecided, RuntimeError):
                return False
            finally:
                for session in (*others, pair.ours, pair.theirs):
                    session.close()
            if isinstance(now, tuple) and now[0] == found[0]:
                last[0] = now
                return True
            return False

        print(f"# before it is shortened: {found[1]}", flush=True)
        repeated = again(before, order)
        if repeated:
            order = self._shortened(order, lambda chosen: again(before, chosen))
            before = shrink(before, lambda chosen: chosen if again(chosen, order) else None)
        of = {one.number: one.session for one in transactions}
        batch = [f"session {of[number]}, transaction {number}: {statement}" for number, statement in order]
        raise FailedTogether(*last[0], before, batch, self.settings, repeated)
