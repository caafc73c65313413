"""What the tests of whole servers share: each test is a function with a sandbox of its own or of
its file, run with a time limit; the last line of a file's run is "N passed, N failed".

    from harness import equal, run, true

    def rows_survive(box): ...

    run(rows_survive, …, settings={"rdmacc.nodes": 2})
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import power  # noqa: E402
from sandbox import Failure, Sandbox  # noqa: E402

TEST_SECONDS_MAX = 240
POLL_S = 0.1
LOG_SHOWN = 3000  # characters of the server log after a failure


class Unmet(Exception):
    """An expectation that did not hold."""


def true(condition, what):
    if not condition:
        raise Unmet(what)


def equal(got, expected, what):
    true(got == expected, f"{what}: got {got!r}, expected {expected!r}")


def matches(pattern, text, what):
    true(re.search(pattern, text), f"{what}: {pattern!r} is not in {text!r}")


def eventually(condition, what, seconds=20):
    """Waits until condition() is true; errors count as not yet."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except (Failure, subprocess.SubprocessError, OSError):
            pass
        time.sleep(POLL_S)
    raise Unmet(f"{what}: not within {seconds} s")


def sqlstate(result):
    """SQLSTATE of the first error that psql reported; 00000 when there was none."""
    match = re.search(r"(?:ERROR|FATAL):  (\w{5}):", result.stderr)
    return match.group(1) if match else "00000"


def protocols(box):
    """All that the server offers, and that can write there."""
    offered = box.psql("SELECT unnest(enumvals) FROM pg_settings"
                       " WHERE name = 'rdmacc.protocol'").split("\n")
    durable = box.psql("SHOW rdmacc.durability") == "disk"
    return [protocol for protocol in offered if protocol != "calvin" or not durable]


def fails_with(box, sql, state, dbname="postgres"):
    """Runs `sql`, which must fail with that SQLSTATE; what psql said."""
    result = box.psql(sql, dbname, check=False)
    equal(sqlstate(result), state, f"SQLSTATE of {sql!r} ({result.stderr.strip()})")
    return result.stderr


def retried(box, sql, tries=20, dbname="postgres"):
    """psql's result once it is no serialization failure, as an application would do it."""
    for _ in range(tries):
        result = box.psql(sql, dbname, check=False)
        if sqlstate(result) != "40001":
            return result
    raise Unmet(f"{sql!r}: {tries} serialization failures: {result.stderr}")


def ask(box, sql):
    """What `sql` prints once it is no serialization failure: the nodes' own clean-up of deleted rows
    may win even against a session that is alone."""
    result = retried(box, sql)
    equal(result.stderr, "", sql)
    return result.stdout.rstrip("\n")


class Session:
    """psql kept open: statements are sent one by one, as a user at two terminals would."""

    TERSE = ("-q", "-A", "-t", "-v", "VERBOSITY=verbose")

    def __init__(self, box, dbname="postgres", options=TERSE):
        self.process = subprocess.Popen(
            box.command("psql", "-X", *options),
            env=box.environment(dbname), cwd="/", text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1)
        self.count = 0
        self.ended = False  # psql has ended, with its connection or before it had one

    def send(self, sql):
        """Starts statements without waiting for them."""
        self.count += 1
        try:
            self.process.stdin.write(f"{sql}\n\\echo :done{self.count}:\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.ended = True

    def result(self):
        """What the statements sent last printed, errors included."""
        lines = []
        for line in self.process.stdout:
            if line.strip() == f":done{self.count}:":
                return "".join(lines).rstrip("\n")
            lines.append(line)
        self.ended = True
        return "".join(lines).rstrip("\n")

    def run(self, sql):
        self.send(sql)
        return self.result()

    def backend(self):
        return int(self.run("SELECT pg_backend_pid();"))

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        self.process.wait(timeout=20)


def node_pids(box):
    return [int(pid) for pid in
            box.psql("SELECT pid FROM rdmacc.stat_nodes ORDER BY node").split("\n")]


def nodes_running(box):
    count = box.psql("SELECT count(*) = current_setting('rdmacc.nodes')::int"
                     " FROM rdmacc.stat_nodes WHERE state = 'running'")
    return count == "t" and box.psql("SELECT state FROM rdmacc.stat_durability") in ("", "serving")


def wait_until_up(box, seconds=60):
    eventually(lambda: nodes_running(box), "server and nodes are up, with all rows", seconds)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_a_client_backend(box):
    """One of those that serve pgbench, with SIGKILL."""
    backends = box.psql("SELECT pid FROM pg_stat_activity"
                        " WHERE application_name = 'pgbench'").split("\n")
    os.kill(int(random.choice(backends)), signal.SIGKILL)


def check_money(bank, protocol=None):
    """Of SmallBank's tables: no lock is left (every row is written once), and no money is lost."""
    chosen = f"SET rdmacc.protocol = {protocol}; " if protocol else ""
    bank.box.psql(chosen + "SET statement_timeout = '60s';"
                  "UPDATE savings SET bal = bal; UPDATE checking SET bal = bal")
    equal(bank.money(), bank.expected_money(), "money")


def cluster_name(box):
    """By which the nodes' shared memory is called."""
    with open(f"/proc/{node_pids(box)[0]}/cmdline") as file:
        return re.search(r"--cluster=(\w+)", file.read()).group(1)


def shm_objects(part):
    """Of a cluster: those with its name, or more of it, in theirs."""
    return {name for name in os.listdir("/dev/shm") if part in name}


def out_of_time(*_):
    raise Unmet(f"no end within {TEST_SECONDS_MAX} s")


class PgbenchLoad:
    """pgbench with a script, under a protocol, until it is told to stop."""

    def __init__(self, box, script, protocol, *flags):
        environment = box.environment()
        environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol}"
        self.process = subprocess.Popen(
            box.command("pgbench", "-n", "-T", "100", "--max-tries=1000000", *flags, "-f", "/dev/stdin"),
            env=environment, cwd="/", text=True, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process.stdin.write(script)
        self.process.stdin.close()

    def stop(self):
        """Whether it has run until now."""
        running = self.process.poll() is None
        self.process.terminate()
        self.process.wait(timeout=20)
        return running


def run_one(test, box):
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(TEST_SECONDS_MAX)
    begin = time.monotonic()
    try:
        test(box)
        print(f"ok - {test.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True
    except Exception:  # any error is a failure of this test, the others go on
        signal.alarm(0)
        print(f"not ok - {test.__name__}\n{traceback.format_exc()}", flush=True)
        print("Server log:\n" + box.log_text()[-LOG_SHOWN:], flush=True)
        return False
    finally:
        signal.alarm(0)


def run(*tests, settings=None, extension=True, power_cuts=bool(os.environ.get("POWER_CUTS"))):
    """Runs the tests one after the other on one sandbox and exits. With POWER_CUTS in the environment,
    whatever kills all processes is a power cut."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.environ.get("RDMACC_BUILD"))
    parser.add_argument("names", nargs="*", help="tests to run (default: all)")
    flags = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="rdmacc-tap-")
    box = Sandbox(directory, settings=settings, build=flags.build)
    box.companions = contextlib.ExitStack()  # servers beside it, for several tests
    failed = passed = 0
    try:
        box.create()
        if power_cuts:
            power.attach(box)
        if extension:
            box.start()
            box.psql("CREATE EXTENSION rdmacc")
        for test in tests:
            if flags.names and test.__name__ not in flags.names:
                continue
            if run_one(test, box):
                passed += 1
            else:
                failed += 1
    finally:
        box.companions.close()
        box.remove()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
