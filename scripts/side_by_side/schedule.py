"""Transactions of several sessions at a time, in an order that is drawn beforehand: what is sent when a session
still waits for another follows when it has its answer."""

import dataclasses
import time

from side_by_side.limits import TOO_LARGE
from side_by_side.session import SECONDS_MAX, Hang
from side_by_side.statement import Statement

ENDS = ("BEGIN", "COMMIT", "ROLLBACK")
PATIENCE_S = 0.05  # a statement that has no answer then waits for another session
LOST = ("40001", "40P01", "55P03", TOO_LARGE)


@dataclasses.dataclass
class Transaction:
    number: int
    session: int
    statements: list
    answers: list = dataclasses.field(default_factory=list)  # (statement, outcome)
    begin: int = None  # steps: the first statement is sent
    end: int = None  # the last answer is there

    @property
    def ended_by(self):
        return self.statements[-1].text

    @property
    def committed(self):
        """As far as its client knows."""
        if not self.answers:
            return False
        if len(self.statements) == 1:
            return not self.answers[-1][1].state
        return self.answers[-1][1].tag == "COMMIT"

    @property
    def lost(self):
        return not self.committed and any(outcome.state in LOST for _, outcome in self.answers)

    @property
    def failed(self):
        """By an error that is none of concurrency."""
        return not self.lost and not self.committed

    @property
    def counts(self):
        """It has committed, or was shown an error that has to have a reason."""
        return bool(self.answers) and not self.lost and (self.committed or self.ended_by != "ROLLBACK")


def items(transactions, draw):
    """All statements in one order, which keeps that of each session."""
    queues = {}
    for transaction in transactions:
        queues.setdefault(transaction.session, []).extend(
            (transaction.number, statement) for statement in transaction.statements)
    order = []
    while queues:
        session = draw.pick(sorted(queues))
        order.append(queues[session].pop(0))
        if not queues[session]:
            del queues[session]
    return order


class Schedule:
    def __init__(self, sessions, transactions):
        self.sessions = sessions
        self.transactions = {transaction.number: transaction for transaction in transactions}
        self.step = 0
        self.under_way = {}  # session: (transaction, statement)
        self.queued = {number: [] for number in range(len(sessions))}

    def run(self, order):
        for number, statement in order:
            transaction = self.transactions[number]
            self.queued[transaction.session].append((transaction, statement))
            self._advance()
        deadline = time.monotonic() + SECONDS_MAX
        while self.under_way or any(self.queued.values()):
            self._advance()
            if time.monotonic() > deadline:
                raise Hang("no end within %d s of: %s" % (SECONDS_MAX, "; ".join(
                    str(statement) for _, statement in self.under_way.values())))
        for session in self.sessions:
            if session.in_block():  # whose end has been left out
                session.run(Statement("ROLLBACK"))

    def _advance(self):
        """Takes the answers that have come, and sends what their sessions have next."""
        for number, session in enumerate(self.sessions):
            while True:
                if number in self.under_way:
                    outcome = session.answer(PATIENCE_S)
                    if outcome is None:
                        break
                    self._note(*self.under_way.pop(number), outcome)
                if not self.queued[number]:
                    break
                self._send(number, *self.queued[number].pop(0))

    def _note(self, transaction, statement, outcome):
        self.step += 1
        transaction.answers.append((statement, outcome))
        transaction.end = self.step

    def _send(self, number, transaction, statement):
        """What is left of a transaction that has failed is its end alone, or a way back to a savepoint."""
        ends = statement.text in ("COMMIT", "ROLLBACK")
        if transaction.answers and transaction.answers[-1][1].in_error and not ends \
                and not statement.text.startswith("ROLLBACK TO"):
            return
        if transaction.answers and not transaction.answers[-1][1].in_block:
            return
        self.step += 1
        if transaction.begin is None:
            transaction.begin = self.step
        self.under_way[number] = (transaction, statement)
        self.sessions[number].send(statement)


def transaction_of(number, session, statements):
    """One statement by itself, or a block."""
    return Transaction(number, session, statements if len(statements) == 1 else
                       [Statement("BEGIN"), *statements])
