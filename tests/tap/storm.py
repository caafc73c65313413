"""Clients of a storm: each moves money between accounts and notes every transaction in a journal,
under a number that it uses once, and knows which of them the server has acknowledged."""

import random
import re
import threading
import time

from harness import Session, equal, true
from parallel import PARALLEL, PROTOCOLS

ACCOUNTS = 60
INITIAL = 1000
NOT_COMMITTED = ("23503", "40001", "40P01", "55P03", "57P03")
FAMILIES = 7
JOIN_S = 40
SCHEMA = f"""
CREATE TABLE accounts (id int PRIMARY KEY, v int) USING rdmacc;
CREATE TABLE hot (id int PRIMARY KEY, n int) USING rdmacc;
CREATE TABLE journal (client int, n int, payer int, payee int, amount int, kind text, at int,
  PRIMARY KEY (client, n)) USING rdmacc;
CREATE INDEX ON journal (at);
CREATE TABLE heap_journal (client int, n int, PRIMARY KEY (client, n)) USING heap;
CREATE TABLE parents (id int PRIMARY KEY) USING rdmacc;
CREATE TABLE heap_children (client int, n int, p int REFERENCES parents,
  PRIMARY KEY (client, n)) USING heap;
CREATE TABLE heap_parents (id int PRIMARY KEY) USING heap;
CREATE TABLE children (client int, n int, p int REFERENCES heap_parents,
  PRIMARY KEY (client, n)) USING rdmacc;
INSERT INTO accounts SELECT i, {INITIAL} FROM generate_series(1, {ACCOUNTS}) AS i;
INSERT INTO hot VALUES (1, 0);
"""
NEW_SCHEMA = ("DROP TABLE accounts, hot, journal, heap_journal, heap_children, parents, children,"
              " heap_parents;" + SCHEMA)
# One message to the server each. Rows with negative numbers are rolled back.
MOVE = ("UPDATE accounts SET v = v - {x} WHERE id = {a}\\;"
        "UPDATE accounts SET v = v + {x} WHERE id = {b}\\;")
NOTE = "INSERT INTO journal VALUES ({c}, {n}, {a}, {b}, {x}, '{kind}')\\;"
TRANSACTIONS = {
    "spread": "BEGIN\\;" + MOVE + NOTE + "COMMIT;",
    "hot": "BEGIN\\; UPDATE hot SET n = n + 1 WHERE id = 1\\;" + MOVE +
           "INSERT INTO journal SELECT {c}, {n}, {a}, {b}, {x}, 'hot', n FROM hot WHERE id = 1\\;"
           "COMMIT;",
    "mixed": "BEGIN\\; INSERT INTO heap_journal VALUES ({c}, {n})\\;" + MOVE + "SAVEPOINT s\\;"
             "INSERT INTO heap_journal VALUES ({c}, -{n})\\; DELETE FROM accounts WHERE id = {a}\\;"
             "INSERT INTO journal VALUES ({c}, -{n})\\; ROLLBACK TO s\\; SAVEPOINT s\\;" + NOTE +
             "RELEASE s\\; COMMIT;",
    "born": "BEGIN\\; INSERT INTO parents VALUES ({f}) ON CONFLICT DO NOTHING\\;"
            "INSERT INTO heap_children VALUES ({c}, {n}, {f})\\;" + MOVE +
            "INSERT INTO heap_parents VALUES ({f}) ON CONFLICT DO NOTHING\\;"
            "INSERT INTO children VALUES ({c}, {n}, {f})\\;" + NOTE + "COMMIT;",
    "gone": "BEGIN\\; DELETE FROM heap_children WHERE p = {f}\\; DELETE FROM parents WHERE id = {f}\\;"
            "DELETE FROM children WHERE p = {f}\\; DELETE FROM heap_parents WHERE id = {f}\\;" +
            MOVE + NOTE + "COMMIT;",
    "undone": "BEGIN\\; INSERT INTO heap_journal VALUES ({c}, -{n})\\;" + MOVE +
              "INSERT INTO journal VALUES ({c}, -{n})\\; ROLLBACK;",
}
ORPHANS = """
SELECT (SELECT count(*) FROM children WHERE p NOT IN (SELECT id FROM heap_parents)),
  (SELECT count(*) FROM heap_children WHERE p NOT IN (SELECT id FROM parents)),
  (SELECT count(*) FROM children c FULL JOIN heap_children h USING (client, n)
   WHERE c.p IS DISTINCT FROM h.p)"""
DIFFERENT_ACCOUNTS = f"""
SELECT count(*) FROM accounts AS a FULL JOIN
  (SELECT i AS id, {INITIAL} + coalesce((SELECT sum(CASE WHEN payee = i THEN amount ELSE 0 END
    - CASE WHEN payer = i THEN amount ELSE 0 END) FROM journal), 0) AS v
   FROM generate_series(1, {ACCOUNTS}) AS i) AS e
  ON a.id = e.id AND a.v = e.v
WHERE e.id IS NULL OR a.id IS NULL"""


class Worker(threading.Thread):
    """Does its step() again and again, over a session that it opens anew when it has ended."""

    def __init__(self, box, settings):
        super().__init__(daemon=True)
        self.box = box
        self.settings = settings
        self.session = None
        self.stopping = threading.Event()
        self.failure = None
        self.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                if self.session is None and not self.connect():
                    time.sleep(0.05)
                elif self.session is not None:
                    self.step()
        except Exception as error:  # is raised again by stop()
            self.failure = error

    def connect(self):
        session = Session(self.box)
        if session.run(self.settings + " SELECT 'here';") == "here" and not session.ended:
            self.session = session
            return True
        session.process.kill()
        session.process.wait()
        return False

    def lose_session(self):
        self.session.process.kill()
        self.session.process.wait()
        self.session = None

    def stop(self):
        self.stopping.set()

    def end(self):
        self.join(JOIN_S)
        true(not self.is_alive(), "a client hangs")
        if self.session is not None:
            self.lose_session()
        if self.failure is not None:
            raise self.failure


class Client(Worker):
    def __init__(self, box, number, settings):
        self.number = number
        self.n = 1  # of the transaction that is next, or under way
        self.committed = []
        self.unknown = []
        self.states = {}  # SQLSTATEs of failures, how often
        super().__init__(box, settings)

    def step(self):
        kind = random.choices(("spread", "hot", "mixed", "born", "gone", "undone"),
                              (5, 3, 3, 2, 1, 1))[0]
        said = self.session.run(TRANSACTIONS[kind].format(
            c=self.number, n=self.n, a=random.randint(1, ACCOUNTS), b=random.randint(1, ACCOUNTS),
            x=random.randint(1, 9), f=random.randint(1, FAMILIES), kind=kind))
        state = said.partition("ERROR:  ")[2][:5]
        if said == "" and not self.session.ended:
            if kind != "undone":
                self.committed.append(self.n)
                self.n += 1
            return
        self.states[state] = self.states.get(state, 0) + 1
        if self.session.ended or state not in NOT_COMMITTED:
            self.unknown.append(self.n)
            self.n += 1
        if self.session.ended or self.session.run("ROLLBACK;") and self.session.ended:
            self.lose_session()


class Reader(Worker):
    """Notes the hot row, which only grows, and adds the accounts up."""

    SUM = "SELECT (SELECT n FROM hot WHERE id = 1) || ' ' || (SELECT sum(v) FROM accounts)"
    statements = f"BEGIN READ ONLY\\; {SUM}\\; COMMIT;"

    def __init__(self, box, settings):
        self.seen = 0
        self.reads = 0
        super().__init__(box, settings)

    def step(self):
        said = self.session.run(self.statements)
        if re.fullmatch(r"\d+ \d+", said) is None:  # then it may not have committed
            true(self.session.ended or re.search("57P0[12]|ERROR", said),
                 f"a reader was told {said!r}")
            if self.session.ended or "ERROR" not in said:
                self.lose_session()
            else:
                self.session.run("ROLLBACK;")
        else:
            seen, money = said.split()
            equal(int(money), ACCOUNTS * INITIAL, "the sum that a reader saw")
            true(int(seen) >= self.seen, f"a reader saw {seen} after {self.seen}")
            self.seen = int(seen)
            self.reads += 1
            time.sleep(0.01)


class ParallelReader(Reader):
    """Has its scans done by parallel workers where the protocol lets them. Its statement is alone, so
    that the server runs it again after a conflict, of which there are many while workers start."""

    statements = Reader.SUM + ";"

    def __init__(self, box, settings):
        super().__init__(box, settings + PARALLEL)

    def connect(self):
        if not super().connect():
            return False
        protocol = self.session.run("SHOW rdmacc.protocol;")
        plan = self.session.run("EXPLAIN SELECT sum(v) FROM accounts;")
        true(self.session.ended or "ERROR" in plan or ("Gather" in plan) == (protocol in PROTOCOLS), plan)
        return True


def stop_all(workers):
    for worker in workers:
        worker.stop()
    for worker in workers:
        worker.end()


def judge_journal(box, clients, all_kept):
    """What was acknowledged and is lost, and what is there of no transaction that was sent, as
    (client, number). `all_kept`: all has to be there; else the first ones of each client, in order."""
    lost, invented = [], []
    rows = box.psql("SELECT client, string_agg(n::text, ' ' ORDER BY n) FROM journal GROUP BY 1")
    found = {int(line.split("|")[0]): [int(n) for n in line.split("|")[1].split()]
             for line in rows.split("\n") if line}
    for client in clients:
        here = found.get(client.number, [])
        committed = set(client.committed)
        last = client.n if all_kept else max(here, default=0)
        invented += [(client.number, n) for n in set(here) - committed - set(client.unknown)]
        lost += [(client.number, n) for n in committed - set(here) if all_kept or n < last]
    return sorted(lost), sorted(invented)


def check_journal(box, clients, all_kept):
    lost, invented = judge_journal(box, clients, all_kept)
    equal(invented, [], "rows of no transaction that was sent, as (client, number)")
    equal(lost, [], "acknowledged and lost")


def check_tables(box):
    """Of one database state: they agree with each other."""
    equal(box.psql(DIFFERENT_ACCOUNTS), "0", "accounts that the journal does not explain")
    equal(box.psql(ORPHANS), "0|0|0", "children without a parent, and of one kind alone")
    equal(box.psql("SELECT count(*) = max(at) OR max(at) IS NULL, count(DISTINCT at) = count(*),"
                   " coalesce(max(at), 0) = (SELECT n FROM hot) FROM journal WHERE kind = 'hot'"),
          "t|t|t", "the hot row and the journal")
    equal(box.psql("SELECT count(*) FROM (SELECT client, n FROM journal WHERE kind = 'mixed') AS j"
                   " FULL JOIN (SELECT client AS c, n AS m FROM heap_journal) AS h"
                   " ON client = c AND n = m WHERE n IS NULL OR m IS NULL OR n < 0"),
          "0", "heap rows and rdmacc rows of mixed transactions that differ")
