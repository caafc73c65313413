"""Sessions that change the definitions of a storm's tables while its clients use them."""

import itertools
import random

from harness import equal, true
from storm import ACCOUNTS, INITIAL, Worker

# {k}: the changer's own number. Each leaves what the tables mean as it was, whether or not it fails.
CHANGES = (
    "CREATE INDEX more{k} ON journal (payer);",
    "BEGIN; CREATE INDEX more{k} ON accounts (v); ROLLBACK;",
    "ALTER TABLE journal ADD COLUMN more{k} int DEFAULT 7;",
    "ALTER TABLE accounts ALTER v TYPE bigint; ALTER TABLE accounts ALTER v TYPE int;",
    "ALTER TABLE journal ALTER amount TYPE bigint; ALTER TABLE journal ALTER amount TYPE int;",
    "BEGIN; ALTER TABLE journal ALTER amount TYPE bigint; ROLLBACK;",
    "REINDEX TABLE journal;",
    "VACUUM accounts; ANALYZE journal;",
    "BEGIN; ALTER TABLE accounts DROP CONSTRAINT accounts_pkey; ALTER TABLE accounts ADD PRIMARY KEY (id); COMMIT;",
    # Truncated and filled again, locked before or after it was read.
    "BEGIN; LOCK TABLE hot; CREATE TABLE kept{k} USING heap AS SELECT * FROM hot; TRUNCATE hot;"
    " INSERT INTO hot SELECT * FROM kept{k}; DROP TABLE kept{k}; COMMIT;",
    "BEGIN; CREATE TABLE kept{k} USING heap AS SELECT * FROM hot; TRUNCATE hot;"
    " INSERT INTO hot SELECT * FROM kept{k}; DROP TABLE kept{k}; COMMIT;",
    "BEGIN; TRUNCATE accounts; INSERT INTO accounts VALUES (1, 1); ROLLBACK;",
    # Another table under the same name, likewise.
    "BEGIN; LOCK TABLE accounts; CREATE TABLE other{k} (id int PRIMARY KEY, v int) USING rdmacc;"
    " INSERT INTO other{k} SELECT * FROM accounts; DROP TABLE accounts; ALTER TABLE other{k} RENAME TO accounts;"
    " ALTER INDEX other{k}_pkey RENAME TO accounts_pkey; COMMIT;",
    "BEGIN; CREATE TABLE other{k} (id int PRIMARY KEY, n int) USING rdmacc; INSERT INTO other{k} SELECT * FROM hot;"
    " DROP TABLE hot; ALTER TABLE other{k} RENAME TO hot; ALTER INDEX other{k}_pkey RENAME TO hot_pkey; COMMIT;",
    "BEGIN; CREATE TABLE side{k} (i int PRIMARY KEY, t text) USING rdmacc;"
    " INSERT INTO side{k} SELECT i, repeat('x', 300) FROM generate_series(1, 500) AS i; COMMIT; TRUNCATE side{k};"
    " INSERT INTO side{k} SELECT i, 'y' FROM generate_series(1, 500) AS i;",
    "BEGIN; CREATE TABLE copied{k} USING rdmacc AS SELECT * FROM accounts; SELECT 'sum', sum(v) FROM copied{k}; COMMIT;",
)
CLEANUP = ("ROLLBACK; DROP TABLE IF EXISTS copied{k}, kept{k}, side{k}, other{k}; DROP INDEX IF EXISTS more{k};"
           "ALTER TABLE journal DROP COLUMN IF EXISTS more{k};")
LOST = ("40001", "40P01")
# PostgreSQL's CREATE INDEX looks a name up, and then at its table, before it locks it: of any kind of table that
# another transaction replaces in between.
GONE_BEFORE_LOCK = "XX000: cache lookup failed for relation"


class Changer(Worker):
    """Does one of CHANGES after the other, in an order of its own."""

    count = itertools.count(1)

    def __init__(self, box, settings, access_method="rdmacc"):
        self.number = next(Changer.count)
        self.access_method = access_method
        self.rest = []
        self.done = 0
        self.lost = 0
        super().__init__(box, settings)

    def connect(self):
        """The session before may have ended in the midst of one."""
        if not super().connect():
            return False
        self.session.run(CLEANUP.format(k=self.number))
        return not self.session.ended

    def step(self):
        if not self.rest:
            self.rest = random.sample(CHANGES, len(CHANGES))
        change = self.rest.pop().format(k=self.number).replace("USING rdmacc", f"USING {self.access_method}")
        said = self.session.run(change)
        # And its transaction has committed. A heap may be seen as it was before it was filled.
        if self.access_method == "rdmacc" and said.startswith("sum|") and "\n" not in said:
            equal(said, f"sum|{ACCOUNTS * INITIAL}", "what a copy of all accounts adds up to")
        if not self.session.ended and "terminating connection" not in said:
            error = said.partition("ERROR:  ")[2]
            state = error[:5]
            gone = "CREATE INDEX" in change and error.startswith(GONE_BEFORE_LOCK)
            true(gone or state in ("", *LOST, "57P03"), f"{change}: {said}")
            self.done += state == ""
            self.lost += state != ""
            self.session.run(CLEANUP.format(k=self.number))
        if self.session.ended:
            self.lose_session()
