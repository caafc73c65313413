#!/usr/bin/env python3
"""make check-assert: the extension's own tests on a server that checks itself. Fetches Debian's
source of PostgreSQL 15, builds it with --enable-cassert, builds pg_rdmacc against it, and runs the
regression suites, the isolation suites and the tests of whole servers there; then some regression
suites again with debug_discard_caches = 1, when every cache is thrown away at every chance.

Part of a soak, not of make check: it needs the network and builds a server. Everything is below
build/pg-assert; a second run uses what it finds there.

    scripts/assert_server.py [--jobs N] [--build-only] [--skip-discard]

The last line is "N passed, N failed"."""

import argparse
import os
import shutil
import signal
import subprocess
import sys

import check
import debian_source
from sandbox import SERVER_USER, Sandbox

PLACE = os.path.join(check.ROOT, "build/pg-assert")
SOURCE = os.path.join(PLACE, "source")
INSTALLED = os.path.join(PLACE, "install")
PG_HOME = os.path.join(INSTALLED, "usr/lib/postgresql/15")
PG_CONFIG = os.path.join(PG_HOME, "bin/pg_config")
BUILD = os.path.join(PLACE, "build")
# The layout of Debian's package below another root, so that scripts/pg_tree.sh knows its way.
CONFIGURE = ["./configure", "-q", "--enable-cassert", "--without-readline", "--without-zlib",
             "--with-icu", f"--prefix={INSTALLED}/usr", f"--bindir={PG_HOME}/bin",
             f"--libdir={PG_HOME}/lib", f"--datadir={INSTALLED}/usr/share/postgresql/15",
             f"--includedir={INSTALLED}/usr/include/postgresql", "CFLAGS=-O1 -g"]
# Reading every catalogue anew takes a hundred times as long. These suites are about definitions,
# keys and plans, where something kept beyond its time would show.
DISCARD_SUITES = ("create_drop", "primary_key", "ddl_rollback", "custom_scan")
DISCARD_SECONDS_MAX = 900


class Failure(Exception):
    """Something the user has to know, in one sentence."""


def run(*command, cwd=PLACE, seconds=3600, env=os.environ):
    print("  " + " ".join(command)[:100], flush=True)
    log = os.path.join(PLACE, "build.log")
    # PostgreSQL's makefiles make their headers where no make is above them.
    alone = {name: value for name, value in env.items()
             if not name.startswith("MAKE") and name != "MFLAGS"}
    with open(log, "ab") as file:
        done = subprocess.run(["nice", *command], cwd=cwd, stdout=file, stderr=subprocess.STDOUT,
                              timeout=seconds, env=alone)
    if done.returncode != 0:
        raise Failure(f"{command[0]} ended with {done.returncode}: see {log}")


def fetch():
    """A copy, in which the server is built."""
    if os.path.exists(os.path.join(SOURCE, "configure")):
        return
    try:
        fetched = debian_source.fetch(debian_source.POSTGRESQL)
    except debian_source.Unavailable as reason:
        raise Failure(f"PostgreSQL's source cannot be fetched: {reason}") from None
    shutil.rmtree(SOURCE, ignore_errors=True)
    copied = SOURCE + ".part"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(fetched, copied, symlinks=True)
    os.rename(copied, SOURCE)


def build_server(jobs):
    if os.path.exists(os.path.join(PLACE, "built")):
        return
    if not os.path.exists(os.path.join(SOURCE, "config.status")):
        run(*CONFIGURE, cwd=SOURCE)
    run("make", "-s", f"-j{jobs}", "install", cwd=SOURCE, seconds=7200)
    # What the suites use.
    for folder in ("src/test/isolation", "contrib/dblink", "contrib/pg_stat_statements", "contrib/spi"):
        run("make", "-s", "-C", folder, "install", cwd=SOURCE)
    with open(os.path.join(PLACE, "built"), "w"):
        pass


def build_extension(jobs):
    environment = dict(os.environ, PG_CONFIG=PG_CONFIG)
    run("cmake", "-G", "Ninja", "-S", check.ROOT, "-B", BUILD, f"-DPG_CONFIG={PG_CONFIG}",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", env=environment)
    run("cmake", "--build", BUILD, "-j", str(jobs), "--target", "pg_rdmacc", "rdmacc_node",
        "rdmacc_bench", "rdmacc_report", "rdmacc_check", "rdmacc_ledger", "power", env=environment,
        seconds=7200)


def check_asserts():
    """A server that does not check itself would prove nothing."""
    said = subprocess.run([PG_CONFIG, "--configure"], text=True, capture_output=True, check=True)
    if "--enable-cassert" not in said.stdout:
        raise Failure(f"{PG_CONFIG} is of a server without assertions")
    reached = subprocess.run(Sandbox.as_server_user(["test", "-x", PG_CONFIG]))
    if reached.returncode != 0:
        raise Failure(f"user {SERVER_USER}, which runs the server, cannot enter {PG_HOME}")


def suites():
    parts = check.server_parts()
    for part in parts:
        part.name = "assert " + part.name
        part.limit_s *= 4
    return parts


def discard_parts():
    missing = [name for name in DISCARD_SUITES
               if not os.path.exists(os.path.join(check.ROOT, "sql", name + ".sql"))]
    if missing:
        raise Failure(f"there are no suites {missing}: DISCARD_SUITES is out of date")
    return [check.Part(f"assert without caches {name}",
                       ["env", "PGOPTIONS=-c debug_discard_caches=1", sys.executable,
                        "scripts/run_regress.py", "regress", name],
                       check.count_counted, DISCARD_SECONDS_MAX)
            for name in DISCARD_SUITES]


def prepare(jobs):
    os.makedirs(PLACE, exist_ok=True)
    fetch()
    build_server(jobs)
    check_asserts()
    build_extension(jobs)


def run_all(jobs, discard=True):
    """All parts, run; for the caller to count."""
    os.makedirs(check.LOGS, exist_ok=True)
    prepare(jobs)
    os.environ["PG_CONFIG"] = PG_CONFIG
    os.environ["RDMACC_BUILD"] = BUILD
    return check.in_turn(suites() + (discard_parts() if discard else []))


def main():
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, check.end_all)
    parser = argparse.ArgumentParser(description="tests on a server with assertions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--skip-discard", action="store_true")
    flags = parser.parse_args()
    if flags.build_only:
        prepare(flags.jobs)
        return 0
    parts = run_all(flags.jobs, not flags.skip_discard)
    failed = sum(part.failed for part in parts)
    print(f"{sum(part.passed for part in parts)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"assert_server: {failure}")
