"""Debian's source of PostgreSQL 15, for the tests that need what no package ships. Fetched by apt
with a sources list and package lists of its own, so that nothing of the system is changed; the
second caller finds what the first one fetched below build/pg-source."""

import fcntl
import glob
import os
import shutil
import subprocess

from sandbox import ROOT

PLACE = os.path.join(ROOT, "build/pg-source")
SOURCE = os.path.join(PLACE, "source")
PACKAGE = "postgresql-15"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITE = "bookworm"
# The security archive keeps a version only until the next: the point release always has one.
ARCHIVES = f"deb-src [signed-by={KEYRING}] http://deb.debian.org/debian {SUITE} main\n"
APT_SECONDS_MAX = 600
# What a program cannot be built without; installed by packages-test.txt.
UNPACK = "dpkg-source"


class Unavailable(Exception):
    """Why there is no source here, in one sentence."""


def run(*command, seconds=APT_SECONDS_MAX):
    log = os.path.join(PLACE, "fetch.log")
    print("  " + " ".join(command)[:100], flush=True)
    try:
        with open(log, "ab") as file:
            done = subprocess.run(["nice", *command], cwd=PLACE, stdout=file,
                                  stderr=subprocess.STDOUT, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} did not end within {seconds} s: see {log}") from None
    if done.returncode != 0:
        raise Unavailable(f"{command[0]} ended with {done.returncode}: see {log}")


def apt(*arguments):
    lists = os.path.join(PLACE, "lists")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    sources = os.path.join(PLACE, "sources.list")
    with open(sources, "w") as file:
        file.write(ARCHIVES)
    # Fetched files are written by this user: apt's own may not enter here.
    run("apt-get", "-q", "-o", f"Dir::Etc::SourceList={sources}",
        "-o", "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State::Lists={lists}",
        "-o", "Dir::Cache::PkgCache=", "-o", "Dir::Cache::SrcPkgCache=",
        "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30",
        "-o", "APT::Sandbox::User=root", *arguments)


def fetch_once():
    for program in ("apt-get", UNPACK):
        if shutil.which(program) is None:
            raise Unavailable(f"there is no {program} here")
    if not os.path.exists(KEYRING):
        raise Unavailable(f"there is no {KEYRING}, by which packages are checked")
    apt("update")
    # apt-get checks what it fetches against the signed lists.
    apt("source", "--download-only", "--only-source", PACKAGE)
    description = sorted(glob.glob(os.path.join(PLACE, PACKAGE + "_*.dsc")))[-1]
    unpacked = SOURCE + ".part"
    shutil.rmtree(unpacked, ignore_errors=True)
    run(UNPACK, "-x", description, unpacked)
    os.rename(unpacked, SOURCE)


def fetch():
    """The folder of the unpacked source; raises Unavailable."""
    os.makedirs(PLACE, exist_ok=True)
    with open(os.path.join(PLACE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(SOURCE):
            fetch_once()
    return SOURCE
