#!/usr/bin/env python3
"""Rows of up to 1 MB, under each protocol and both kinds of primitives, and over a node's death."""

import os
import signal

from harness import (equal, eventually, fails_with, node_pids, nodes_running, protocols, retried, run,
                     true)

ROW_BYTES_MAX = 1 << 20
HEADER_BYTES = 64  # what a row has beside this text, at most
ORDERED_BYTES = 1_000_000  # all that one transaction may write under calvin


def set_up(box):
    box.psql("CREATE TABLE long (id int PRIMARY KEY, v text) USING rdmacc;"
             "CREATE TABLE sums (id int PRIMARY KEY, sum text) USING rdmacc")


def sums_are_right(box, what):
    wrong = retried(box, "SELECT id, length(v) FROM long FULL JOIN sums USING (id)"
                    " WHERE md5(v) IS DISTINCT FROM sum ORDER BY id").stdout.strip()
    equal(wrong, "", what)


def written_and_read_under_every_protocol(box):
    number = 0
    for protocol in protocols(box):
        longest = ORDERED_BYTES if protocol == "calvin" else ROW_BYTES_MAX - HEADER_BYTES
        for stages in ("one_sided", "rpc"):
            number += 1
            before = f"SET rdmacc.protocol = {protocol}; SET rdmacc.stages = '{stages}';"
            text = f"left(repeat(md5('{number}'), {longest // 32 + 1}), "
            for length in (70_000, longest, 300_000, longest):
                result = retried(box, before + f"INSERT INTO long VALUES ({number}, {text}{length}))"
                                 " ON CONFLICT (id) DO UPDATE SET v = excluded.v || ''")
                equal(result.stderr, "", f"{protocol}, {stages}, {length} bytes")
            found = retried(box, before + f"SELECT length(v), md5(v) = md5({text}{longest}))"
                            f" FROM long WHERE id = {number}").stdout.strip()
            equal(found, f"{longest}|t", f"{protocol}, {stages}")
            retried(box, before + f"INSERT INTO sums SELECT id, md5(v) FROM long WHERE id = {number}")
    sums_are_right(box, "all rows")


def one_byte_more_is_refused(box):
    fails_with(box, f"INSERT INTO long VALUES (100, repeat('x', {ROW_BYTES_MAX}))", "54000")
    fails_with(box, f"SET rdmacc.protocol = calvin; INSERT INTO long VALUES (100,"
               f" repeat('x', {ROW_BYTES_MAX - HEADER_BYTES}))", "53200")


def rows_outlive_a_node(box):
    for pid in node_pids(box):
        os.kill(pid, signal.SIGKILL)
        eventually(lambda gone=pid: nodes_running(box) and gone not in node_pids(box),
                   "the node is back")
        sums_are_right(box, "after a node's death")


def memory_comes_back(box):
    def used():
        return int(box.psql("SELECT sum(used_bytes) FROM rdmacc.stat_nodes"))
    begin = used()
    for i in range(8):
        equal(retried(box, "SET rdmacc.protocol = mvcc;"
                      f"UPDATE long SET v = '{i}' || left(v, -1) WHERE id <= 2").stderr, "", "update")
    retried(box, "SET rdmacc.protocol = occ; DELETE FROM long")
    eventually(lambda: used() < begin / 2, f"less than half of {begin} bytes is used")
    true(box.psql("SELECT count(*) FROM long") == "0", "nothing is left")


run(set_up, written_and_read_under_every_protocol, one_byte_more_is_refused, rows_outlive_a_node,
    memory_comes_back,
    settings={"rdmacc.nodes": 2, "rdmacc.durability": "memory",
              "rdmacc.node_memory": "512MB", "autovacuum": "off"})
