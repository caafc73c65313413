"""Clients and readers at work while something ends the server, and everything that has to hold of
their tables afterwards."""

import time

from harness import eventually
from storm import NEW_SCHEMA, Client, ParallelReader, Reader, check_journal, check_tables, stop_all
from verify import verify

CLIENTS = 6
READERS = (Reader, ParallelReader)
TABLES_LIVE = 6  # loads; checks of a long journal take long


class Load:
    """Ends at the end of a `with` block."""

    count = 0

    def __init__(self, box, settings):
        self.box = box
        Load.count += 1
        if Load.count % TABLES_LIVE == 0:
            box.psql(NEW_SCHEMA)
        self.clients = [Client(box, Load.count * 100 + i, settings) for i in range(CLIENTS)]
        self.readers = [kind(box, settings) for kind in READERS]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop_all(self.clients + self.readers)

    def wait(self):
        eventually(lambda: all(client.committed for client in self.clients), "all clients commit",
                   30)

    def wait_for_more(self):
        before = [len(client.committed) for client in self.clients]
        eventually(lambda: all(len(client.committed) > count
                               for client, count in zip(self.clients, before)),
                   "clients go on", 30)

    def report(self, what):
        states = {}
        for client in self.clients:
            for state, count in client.states.items():
                states[state or "lost"] = states.get(state or "lost", 0) + count
        print(f"  {what}: {sum(len(client.committed) for client in self.clients)} committed,"
              f" {sum(len(client.unknown) for client in self.clients)} unknown, failures {states},"
              f" {sum(reader.reads for reader in self.readers)} reads", flush=True)

    def check(self, what, all_kept=True):
        """When it has ended."""
        box = self.box
        self.report(what)
        check_journal(box, self.clients, all_kept)
        check_tables(box)
        verify(box, what, losses=True)
        # Backends whose clients have gone may still be at their last statement.
        eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.locks") == "0",
                   f"{what}: no locks")


def checkpoint_now_and_then(box, randomness):
    """Some time of work, often with a checkpoint in it."""
    time.sleep(randomness.uniform(0.1, 1))
    if randomness.random() < 0.6:
        box.psql("CHECKPOINT")
        time.sleep(randomness.choice((0, 0.2)))
