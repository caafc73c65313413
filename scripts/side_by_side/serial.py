"""Looks for an order in which a heap, one transaction after the other, gives to each the answers that it had on
rdmacc, and ends with the same tables. Under protocols that are strictly serializable a transaction that
had ended before another began comes before it.

What it proves: if there is none, the history was not serializable, or an answer was wrong. What it does not: the
histories are as short as their number of orders allows, and transactions that lost, or that their client has
rolled back, are left out."""

from side_by_side import compare
from side_by_side.statement import Statement

STRICT = ("nowait", "waitdie", "woundwait", "occ", "drtm", "calvin")
PLACED_MAX = 1500  # transactions carried out on the heap for one batch


class Undecided(Exception):
    """Too many orders to try all of them."""


class Serial:
    def __init__(self, heap, protocol, contents):
        self.heap = heap
        self.strict = protocol in STRICT
        self.contents = contents  # [(statement, outcome)] on rdmacc, after all of them
        self.placed = 0
        self.nearest = (-1, "")  # how many were placed, and why no further one was

    def explain(self, transactions):
        """The order, which the heap has committed then; None if there is none."""
        self._do("BEGIN")
        order = self._place(sorted(transactions, key=lambda one: one.end), [])
        self._do("ROLLBACK" if order is None else "COMMIT")
        return order

    def _do(self, text):
        outcome = self.heap.run(Statement(text))
        if outcome.state:
            raise RuntimeError(f"{text} on heap: {outcome.state} {outcome.message}")

    def _place(self, rest, before):
        if not rest:
            return before if self._same_contents(before) else None
        for one in rest:
            if self.strict and any(other.end < one.begin for other in rest):
                continue
            self.placed += 1
            if self.placed > PLACED_MAX:
                raise Undecided
            name = f"order{len(before)}"
            self._do(f"SAVEPOINT {name}")
            if self._same_answers(one, before):
                order = self._place([other for other in rest if other is not one], [*before, one])
                if order is not None:
                    return order
            self._do(f"ROLLBACK TO {name}")
        return None

    def _same_answers(self, transaction, before):
        self._do("SAVEPOINT begin_of_it")
        for statement, outcome in transaction.answers:
            if statement.text in ("BEGIN", "COMMIT", "ROLLBACK"):
                continue
            found = compare.difference(statement, outcome, self.heap.run(statement))
            if found is not None:
                self._note(before, f"transaction {transaction.number}, {statement}:\n{found[1]}")
                self._do("ROLLBACK TO begin_of_it")
                return False
        if transaction.failed:
            self._do("ROLLBACK TO begin_of_it")
        return True

    def _same_contents(self, before):
        for statement, outcome in self.contents:
            found = compare.difference(statement, outcome, self.heap.run(statement))
            if found is not None:
                self._note(before, f"at the end, {statement}:\n{found[1]}")
                return False
        return True

    def _note(self, before, text):
        if len(before) > self.nearest[0]:
            order = ", ".join(str(one.number) for one in before) or "nothing"
            self.nearest = (len(before), f"after {order}: {text}")
