#!/usr/bin/env python3
"""SQL over two nodes that have an RDMA device each; for a machine or a guest that has such
(scripts/check_verbs.py)."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tap"))
from harness import (check_money, equal, eventually, node_pids, run, true,  # noqa: E402
                     wait_until_up)
from smallbank import SmallBank  # noqa: E402

CUSTOMERS = 1000
CLIENTS = 2
SECONDS = 2
VARIANTS = (("nowait", "one_sided"), ("occ", "rpc"), ("mvcc", "lock=rpc,log=one_sided"))
SETTINGS = {"rdmacc.fabric": "verbs", "rdmacc.verbs_device": os.environ.get("VERBS_DEVICES", ""),
            "rdmacc.nodes": 2, "rdmacc.node_memory": "128MB", "rdmacc.max_workers": 24,
            "fsync": "off"}
# Everything is emulated: what takes a moment elsewhere may take long here.
UP_S = 60


def check_bank(box):
    check_money(SmallBank(box, CUSTOMERS))


def sql_answers(box):
    wait_until_up(box, UP_S)
    equal(box.psql("SHOW rdmacc.fabric"), "verbs", "fabric")
    box.psql("CREATE TABLE t (id int PRIMARY KEY, v text) USING rdmacc;"
             "INSERT INTO t SELECT i, repeat('v', i) FROM generate_series(1, 300) AS i;"
             "UPDATE t SET v = 'short' WHERE id > 290; DELETE FROM t WHERE id % 2 = 0")
    equal(box.psql("SELECT count(*), sum(length(v)) FROM t"), "150|21050", "rows")
    equal(box.psql("SELECT v FROM t WHERE id = 291"), "short", "a row")


def money_is_kept(box):
    bank = SmallBank(box, CUSTOMERS)
    bank.create()
    bank.load()
    for protocol, stages in VARIANTS:
        under_load = bank.start(CLIENTS, SECONDS, protocol, stages)
        output = under_load.communicate(timeout=60)[0]
        equal(under_load.returncode, 0, output[:1500])
        committed = int(re.search(r"actually processed: (\d+)", output).group(1))
        print(f"  {protocol}, {stages}: {committed} committed", flush=True)
        true(committed > 0, f"{protocol}, {stages}: nothing committed")
        check_bank(box)


def a_node_may_be_killed(box):
    os.kill(node_pids(box)[1], signal.SIGKILL)
    wait_until_up(box, UP_S)
    eventually(lambda: box.psql("SELECT count(*) FROM t") == "150", "rows are there again", UP_S)
    check_bank(box)


run(sql_answers, money_is_kept, a_node_may_be_killed, settings=SETTINGS)
