"""The distribution's source of a package, such as PostgreSQL's, for the tests that need what no
package ships. Apt fetches it from the archives that it has configured, with a copy of that
configuration and package lists of its own, so that nothing of the system is changed; the second
caller finds what the first one fetched below build/debian-source."""

import fcntl
import glob
import os
import re
import shutil
import subprocess

from sandbox import ROOT

PLACE = os.path.join(ROOT, "build/debian-source")
POSTGRESQL = "postgresql-15"
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


def configured(key):
    """The path that apt has configured for `key`."""
    command = ["apt-config", "shell", "VALUE", key]
    done = subprocess.run(command, capture_output=True, text=True, timeout=APT_SECONDS_MAX)
    match = re.match(r"VALUE='(.*)'$", done.stdout.strip())
    if match is None:
        raise Unavailable(f"apt-config names no {key}")
    return match.group(1)


def archives_of_sources():
    """Writes apt's configured archives anew, with deb-src for deb, and says where. How each is
    checked (Signed-By) stays as configured."""
    lines = []
    stanzas = os.path.join(PLACE, "sources.list.d")
    shutil.rmtree(stanzas, ignore_errors=True)
    os.makedirs(stanzas)
    parts = configured("Dir::Etc::sourceparts/d")
    for path in [configured("Dir::Etc::sourcelist/f"), *sorted(glob.glob(parts + "/*.list"))]:
        if os.path.exists(path):
            with open(path) as file:
                lines += re.findall(r"^[ \t]*deb(?:-src)?[ \t]+(.+)$", file.read(), re.M)
    sources = os.path.join(PLACE, "sources.list")
    with open(sources, "w") as file:
        file.writelines(f"deb-src {line}\n" for line in dict.fromkeys(lines))
    for path in glob.glob(parts + "/*.sources"):
        with open(path) as file:
            text = re.sub(r"^Types:.*$", "Types: deb-src", file.read(), flags=re.M | re.I)
        with open(os.path.join(stanzas, os.path.basename(path)), "w") as file:
            file.write(text)
    return sources, stanzas


def apt_options():
    lists = os.path.join(PLACE, "lists")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    sources, stanzas = archives_of_sources()
    # Fetched files are written by this user: apt's own may not enter here.
    settings = (f"Dir::Etc::SourceList={sources}", f"Dir::Etc::SourceParts={stanzas}",
                f"Dir::State::Lists={lists}", "Dir::Cache::PkgCache=", "Dir::Cache::SrcPkgCache=",
                "Acquire::Retries=1", "Acquire::http::Timeout=30", "APT::Sandbox::User=root")
    return [word for setting in settings for word in ("-o", setting)]


def offered_versions(package, options):
    done = subprocess.run(["apt-cache", "showsrc", "--only-source", package, *options],
                          capture_output=True, text=True, timeout=APT_SECONDS_MAX)
    return list(dict.fromkeys(re.findall(r"^Version: (\S+)$", done.stdout, re.M)))


def download(package, options):
    """Any version serves. An archive of security updates keeps one only until the next and may have
    dropped what the lists still name; that of the point release always has its own."""
    reason = Unavailable(f"no archive that apt has configured offers the source of {package}")
    for version in offered_versions(package, options):
        try:
            # apt-get checks what it fetches against the signed lists.
            run("apt-get", "-q", "source", "--download-only", "--only-source",
                f"{package}={version}", *options)
            return os.path.join(PLACE, f"{package}_{version.split(':')[-1]}.dsc")
        except Unavailable as failed:
            reason = failed
    raise reason


def fetch_once(package, place):
    for program in ("apt-get", UNPACK):
        if shutil.which(program) is None:
            raise Unavailable(f"there is no {program} here")
    options = apt_options()
    run("apt-get", "-q", "update", *options)
    description = download(package, options)
    unpacked = place + ".part"
    shutil.rmtree(unpacked, ignore_errors=True)
    run(UNPACK, "-x", description, unpacked)
    os.rename(unpacked, place)


def fetch(package):
    """The folder of the unpacked source; raises Unavailable."""
    os.makedirs(PLACE, exist_ok=True)
    place = os.path.join(PLACE, package)
    with open(os.path.join(PLACE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(place):
            fetch_once(package, place)
    return place
