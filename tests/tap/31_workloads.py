#!/usr/bin/env python3
"""The workloads of extension rdmacc_workloads under pgbench: every mix under every protocol and on
heaps, each way that there is to run it; after everything was killed, the checks find nothing."""

import os
import tempfile
import time

from harness import equal, protocols, run, true, wait_until_up
from outage import kill_everything
from workload_mixes import MIXES, check, create, kind_of, paths_of, start
from workload_mixes import run as run_mix

KINDS = {  # the arguments of ..._create(), the variables of the scripts
    "smallbank": ("1000", {"customers": 1000}),
    "ycsb": ("1000", {"records": 1000}),
    "tatp": ("1000", {"subscribers": 1000}),
    "tpcc": ("1, items => 1000, customers => 30",
             {"warehouses": 1, "items": 1000, "customers": 30}),
    "tpce": ("100", {"customers": 100}),
}
FEW_KEYS = "tatp-few-keys"
FEEDS = "tpce-feeds"
FEEDS_EACH, SECURITIES = 20, 10
FEED_FUNCTIONS = ("tpce_market_feed", "tpce_market_feed_sql")
FEED = f"""SELECT rdmacc.{{function}}(array_agg(rdmacc.tpce_symbol(s)::text ORDER BY random()),
  array_fill(21::numeric, ARRAY[{SECURITIES}]), array_fill(1, ARRAY[{SECURITIES}]))
  FROM generate_series(1, {SECURITIES}) s;
"""
PROTOCOLS_IN_PLPGSQL = 3  # of few keys, which are the executor's to find absent there
CLIENTS = 4
A_WHILE, A_FEW = "-T1", "-t10"


def mixes_and_paths(kind):
    return [(mix, path) for mix in MIXES if kind_of(mix) == kind for path in paths_of(mix)]


def made(box, kind, schema, access_method):
    create(box, kind, schema, f"{KINDS[kind][0]}, access_method => '{access_method}'")
    equal(check(box, kind, schema), "", f"{kind} as loaded")


def some_run(box, way, schema, *settings, length=A_WHILE):
    mix, path = way
    variables = KINDS[kind_of(mix)][1]
    rate, retries = run_mix(box, mix, path, schema, variables, CLIENTS, length, settings)
    print(f"  {mix}, {path}, {schema}, {' '.join(settings)}: {rate:.0f}/s, {retries} retries",
          flush=True)
    true(rate > 0, f"{mix} by {path} commits")


def under_protocols(box, offered):
    """A mix of each kind under each protocol, and a few transactions of every other one."""
    for kind in KINDS:
        made(box, kind, kind, "rdmacc")
        ways = mixes_and_paths(kind)[::-1]
        for i in range(max(len(ways), len(offered))):
            length = A_WHILE if i < len(offered) else A_FEW
            some_run(box, ways[i % len(ways)], kind,
                     f"rdmacc.protocol={offered[i % len(offered)]}", length=length)
        equal(check(box, kind, kind), "", f"{kind} after its runs")


def calvin(box):
    """With rows in memory alone."""
    box.psql("CREATE EXTENSION rdmacc_workloads")
    for kind in KINDS:
        schema = kind + "_calvin"
        made(box, kind, schema, "rdmacc")
        some_run(box, mixes_and_paths(kind)[-1], schema, "rdmacc.protocol=calvin")
        equal(check(box, kind, schema), "", f"{kind} under calvin after its run")
        box.psql(f"DROP SCHEMA {schema} CASCADE")


def rows_come_and_go(box, offered):
    """Few keys: what one transaction finds absent others insert, and that is no duplicate."""
    MIXES[FEW_KEYS] = {"insert_call_forwarding": 1, "delete_call_forwarding": 1}
    for number, protocol in enumerate(offered):
        for path in paths_of(FEW_KEYS) if number < PROTOCOLS_IN_PLPGSQL else ("native",):
            rate, retries = run_mix(box, FEW_KEYS, path, "tatp", {"subscribers": 2},
                                    2 * CLIENTS, A_WHILE, [f"rdmacc.protocol={protocol}"])
            print(f"  few keys, {path}, {protocol}: {rate:.0f}/s, {retries} retries", flush=True)
    del MIXES[FEW_KEYS]
    equal(check(box, "tatp", "tatp"), "", "tatp after rows came and went")


def no_feed_is_lost(box, offered):
    """Market-feeds of the same securities, in an order of each client's own: all volumes are there."""
    MIXES[FEEDS] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        scripts = [os.path.join(folder, function) for function in FEED_FUNCTIONS]
        for script, function in zip(scripts, FEED_FUNCTIONS):
            with open(script, "w", encoding="ascii") as file:
                file.write(FEED.format(function=function))
        before = volume(box)
        for number, protocol in enumerate(offered, 1):
            for script in scripts:
                run_mix(box, FEEDS, "native", "tpce", {}, CLIENTS, f"-t{FEEDS_EACH}",
                        [f"rdmacc.protocol={protocol}"], more=("-f", script))
            equal(volume(box) - before,
                  number * len(scripts) * CLIENTS * FEEDS_EACH * SECURITIES,
                  f"volumes after the feeds under {protocol}")
    del MIXES[FEEDS]


def volume(box):
    return int(box.psql("SELECT sum(lt_vol) FROM tpce.last_trade"))


def every_other_protocol(box):
    box.stop()
    box.settings["rdmacc.durability"] = "disk"
    box.start()
    wait_until_up(box)
    box.psql("CREATE EXTENSION IF NOT EXISTS rdmacc_workloads")
    under_protocols(box, protocols(box))
    rows_come_and_go(box, protocols(box))
    no_feed_is_lost(box, protocols(box))


def nothing_is_lost_when_all_is_killed(box):
    """In the midst of every workload."""
    clients = [start(box, *ways[-1], kind, KINDS[kind][1], clients=2, length="-T60")
               for kind in KINDS for ways in [mixes_and_paths(kind)]]
    time.sleep(1)
    equal([client.poll() for client in clients], [None] * len(clients), "clients at work")
    kill_everything(box)
    for client in clients:
        client.communicate(timeout=20)
    box.start()
    wait_until_up(box)
    for kind in KINDS:
        equal(check(box, kind, kind), "", f"{kind} after the kill")
        some_run(box, mixes_and_paths(kind)[-1], kind)


def heaps(box):
    """Serializable, as rdmacc tables always are: the plain transactions read before they write."""
    for kind in KINDS:
        schema = kind + "_heap"
        made(box, kind, schema, "heap")
        some_run(box, mixes_and_paths(kind)[0], schema,
                 "default_transaction_isolation=serializable")
        equal(check(box, kind, schema), "", f"{kind} on heaps after its run")


run(calvin, every_other_protocol, nothing_is_lost_when_all_is_killed, heaps,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory"})
