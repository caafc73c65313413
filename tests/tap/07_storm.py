#!/usr/bin/env python3
"""The protocol gate under a storm: sessions of all protocols at the same rows at the same time, and
one that sits in it."""

import re
import subprocess
import time

from harness import Session, equal, protocols, run, sqlstate, true
from smallbank import SmallBank
from verify import verify

CUSTOMERS = 2000
SECONDS = 5
STAGES = ("one_sided", "rpc", "auto")


def set_up(box):
    bank = SmallBank(box, CUSTOMERS)
    bank.create()
    bank.load()
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v int) USING rdmacc; INSERT INTO t VALUES (1, 0)")


def start_load(box, bank, protocol, stages):
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol} -c rdmacc.stages={stages}"
    return subprocess.Popen(bank.command(2, SECONDS, threads=1), env=environment, cwd="/",
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def committed_by(protocol, process):
    """How many transactions a pgbench has committed; it must have ended well."""
    output = process.communicate(timeout=SECONDS + 60)[0]
    equal(process.returncode, 0, f"{protocol}: {output[:1500]}")
    equal(re.search(r"number of failed transactions: (\d+)", output).group(1), "0",
          f"failed transactions under {protocol}")
    return int(re.search(r"actually processed: (\d+)", output).group(1))


def all_protocols_at_once(box):
    """Money is kept, and every session gets on."""
    bank = SmallBank(box, CUSTOMERS)
    names = protocols(box)
    switches = int(box.psql("SELECT switches FROM rdmacc.gate"))
    processes = [(name, start_load(box, bank, name, STAGES[i % len(STAGES)]))
                 for i, name in enumerate(names)]
    for name, process in processes:
        committed = committed_by(name, process)
        print(f"  {name}: {committed} committed")
        true(committed > 0, f"{name} got nothing done")
    equal(bank.money(), bank.expected_money(), "money")
    verify(box, "all protocols at once")
    row = box.psql(f"SELECT switches - {switches}, mean_switch_us::int, max_switch_us, inside,"
                   " waiting FROM rdmacc.gate").split("|")
    print(f"  {row[0]} switches, mean {row[1]} us, longest {row[2]} us")
    true(int(row[0]) >= len(names), "the gate was switched")
    equal(row[3:], ["0", "0"], "no worker is left at the gate")


def one_that_sits_in_the_gate(box):
    """It stops the others for no longer than they are willing to wait, and they go on once it
    ends."""
    names = protocols(box)
    holder = Session(box)
    holder.run(f"SET rdmacc.protocol = {names[0]};")
    equal(holder.run("BEGIN; SELECT v FROM t WHERE id = 1;"), "0", "the holder")
    waiters = [(name, Session(box)) for name in names[1:] * 3]
    for name, waiter in waiters:
        waiter.run(f"SET rdmacc.protocol = {name}; SET rdmacc.gate_timeout = '500ms';")
    for _ in range(2):
        begin = time.monotonic()
        for _, waiter in waiters:
            waiter.send("SELECT v FROM t WHERE id = 1;")
        for name, waiter in waiters:
            true("55P03" in waiter.result(), f"a waiter under {name} gives up")
        true(time.monotonic() - begin >= 0.5, "they have waited")
    equal(box.psql("SELECT open_protocol, inside, waiting FROM rdmacc.gate"), f"{names[0]}|1|0",
          "gate")
    for _, waiter in waiters:
        waiter.run("SET rdmacc.gate_timeout = '60s';")
        waiter.send("SELECT v FROM t WHERE id = 1;")
    time.sleep(0.2)
    equal(holder.run("UPDATE t SET v = 1 WHERE id = 1; COMMIT;"), "", "the holder ends")
    for name, waiter in waiters:
        equal(waiter.result(), "1", f"a waiter under {name} goes on")
        waiter.close()
    holder.close()


def one_that_sits_too_long_is_ended(box):
    names = protocols(box)
    holder = Session(box)
    holder.run(f"SET idle_in_transaction_session_timeout = '300ms';"
               f" SET rdmacc.protocol = {names[0]};")
    holder.run("BEGIN; UPDATE t SET v = 7 WHERE id = 1;")
    result = box.psql(f"SET rdmacc.protocol = {names[-1]}; SELECT v FROM t WHERE id = 1",
                      check=False)
    equal((sqlstate(result), result.stdout.strip()), ("00000", "1"), "another protocol")
    holder.close()


run(set_up, all_protocols_at_once, one_that_sits_in_the_gate, one_that_sits_too_long_is_ended,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB", "autovacuum": "off"})
