"""The mixes of the workloads that extension rdmacc_workloads brings, as pgbench runs them: which
scripts of pg_rdmacc/workload/pgbench/ with which weights."""

import os
import re
import subprocess

from sandbox import ROOT, Failure

SCRIPTS = os.path.join(ROOT, "pg_rdmacc/workload/pgbench")
TRIES_MAX = 1000
TIMEOUT_S = 1000

MIXES = {
    "smallbank": {  # RCC's
        "send_payment": 17, "deposit_checking": 17, "balance": 17, "write_check": 17,
        "transact_savings": 16, "amalgamate": 16},
    "smallbank-drtm": {
        "send_payment": 25, "deposit_checking": 15, "balance": 15, "write_check": 15,
        "transact_savings": 15, "amalgamate": 15},
    "ycsb": {"transaction": 1},
    "ycsb-a": {"read": 50, "update": 50},
    "ycsb-b": {"read": 95, "update": 5},
    "ycsb-c": {"read": 1},
    "ycsb-d": {"read_latest": 95, "insert": 5},
    "ycsb-e": {"scan": 95, "insert": 5},
    "ycsb-f": {"read": 50, "read_modify_write": 50},
    "tatp": {
        "get_subscriber_data": 35, "get_new_destination": 10, "get_access_data": 35,
        "update_subscriber_data": 2, "update_location": 14, "insert_call_forwarding": 2,
        "delete_call_forwarding": 2},
    "tpcc": {"new_order": 45, "payment": 43, "order_status": 4, "delivery": 4, "stock_level": 4},
    "tpcc-papers": {"new_order": 50, "payment": 50},
    "tpce": {"customer_position": 90, "market_feed": 10},
}


def kind_of(mix):
    return mix.partition("-")[0]


def paths_of(mix):
    """Ways to run it that there are: plain, plpgsql, native."""
    return [path for path in ("plain", "plpgsql", "native")
            if all(os.path.exists(script(mix, path, name)) for name in MIXES[mix])]


def script(mix, path, name):
    return os.path.join(SCRIPTS, kind_of(mix), path, name + ".sql")


def scripts(mix, path):
    return [argument for name, weight in MIXES[mix].items()
            for argument in ("-f", f"{script(mix, path, name)}@{weight}")]


def command(box, mix, path, variables, clients, length, more=()):
    """`length`: pgbench's -T seconds, or -t transactions of a client; `more`: further options."""
    arguments = [f"-D{name}={value}" for name, value in variables.items()]
    return box.command("pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1",
                       length, f"--max-tries={TRIES_MAX}", "--failures-detailed",
                       *more, *arguments, *scripts(mix, path))


def create(box, kind, schema, arguments):
    """Tables in a schema of their own; `arguments` of its ..._create()."""
    box.psql(f"CREATE SCHEMA IF NOT EXISTS {schema}; SET search_path = {schema};"
             f" SET client_min_messages = warning; CALL rdmacc.{kind}_create({arguments})")


def start(box, mix, path, schema, variables, clients=8, length="-T5", settings=(), more=()):
    """pgbench as a process under way."""
    environment = box.environment()
    environment["PGOPTIONS"] = " ".join(f"-c {setting}" for setting in
                                        (f"search_path={schema}", *settings))
    return subprocess.Popen(command(box, mix, path, variables, clients, length, more), cwd="/",
                            env=environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def run(*what, **how):
    """start() to its end: committed transactions a second, and how many were tried once more."""
    process = start(*what, **how)
    try:
        printed, complaints = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    if process.returncode != 0:
        raise Failure(f"pgbench failed: {complaints[-2000:]}{printed[-2000:]}")
    retries = re.search(r"total number of retries: (\d+)", printed)
    return (float(re.search(r"tps = ([\d.]+)", printed).group(1)),
            int(retries.group(1)) if retries else 0)


def check(box, kind, schema):
    """Violated conditions, a line each."""
    return box.psql(f"SET search_path = {schema}; SET rdmacc.protocol = occ;"
                    f" SELECT * FROM rdmacc.{kind}_check()")
