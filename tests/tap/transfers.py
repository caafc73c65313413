"""Clients that move money between an rdmacc table and a heap, both in one transaction."""

import os
import subprocess

from harness import equal, eventually

ACCOUNTS = 40
INITIAL = 1000
LOAD_SECONDS = 2
TRANSFER = f"""
\\set ours random(1, {ACCOUNTS})
\\set heap random(1, {ACCOUNTS})
\\set amount random(-50, 50)
BEGIN;
UPDATE ours SET v = v - :amount WHERE id = :ours;
UPDATE heap SET v = v + :amount WHERE id = :heap;
COMMIT;
"""
TOTAL = "SELECT (SELECT sum(v) FROM ours) + (SELECT sum(v) FROM heap)"


def set_up(box):
    box.psql("DROP TABLE IF EXISTS ours, heap;"
             "CREATE TABLE ours (id int PRIMARY KEY, v int) USING rdmacc;"
             "CREATE TABLE heap (id int PRIMARY KEY, v int) USING heap;"
             f"INSERT INTO ours SELECT i, {INITIAL} FROM generate_series(1, {ACCOUNTS}) AS i;"
             f"INSERT INTO heap SELECT i, {INITIAL} FROM generate_series(1, {ACCOUNTS}) AS i")


def check_total(box, seconds=20):
    """Nothing is in doubt soon, no lock is left, and no money is lost."""
    eventually(lambda: box.psql("SELECT count(*) FROM rdmacc.in_doubt") == "0", "nothing in doubt", seconds)
    box.psql("SET statement_timeout = '20s'; UPDATE ours SET v = v")
    equal(box.psql(TOTAL), str(2 * ACCOUNTS * INITIAL), "the sum over both tables")


def start_transfers(box, protocol):
    script = os.path.join(box.dir, "transfer.sql")
    with open(script, "w") as file:
        file.write(TRANSFER)
    environment = box.environment("postgres")
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
    command = box.command("pgbench", "-n", "-c", "4", "-j", "2", "-T", str(LOAD_SECONDS),
                          "--max-tries=1000", "-f", script)
    return subprocess.Popen(command, cwd="/", env=environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
