"""Isolation tests: every specs/*.spec under every protocol that the server has (nowait in both lock
modes), at every isolation level of PostgreSQL. Which session loses a conflict, and when it learns of it, is the protocol's
business, so that transcripts are not compared. Instead, in each permutation

  * a step whose name begins with "check" must answer, and with t in every column;
  * a step fails for no other reason than a conflict, a transaction that has failed before, or what
    the spec's lines "# may fail with: …" say;
  * nothing fails where the sessions come one after the other (the number at the end of a step's
    name is its session's).

A spec's line "# not under: …" leaves out protocols of which it does not hold, or all that lock what they read
("two-phase locking"); "# as on heaps at: …" names the levels at which PostgreSQL's own tables must pass it as well.

The judge is tried, too: on PostgreSQL's own tables under snapshot isolation it must find what that
allows.

A session that waits for the nodes looks to isolationtester as if it were working. The test database
has its own pg_isolation_test_session_is_blocked, which takes a long wait for one for another
session, so that the permutation goes on."""

import concurrent.futures
import os
import re
import subprocess
import threading

from sandbox import ROOT, pgxs_program

LEVELS = ("read committed", "repeatable read", "serializable")
SPEC_SECONDS_MAX = 120
STEP_SECONDS_MAX = 30
OPTIONS = "-c lock_timeout=5s -c statement_timeout=20s -c client_min_messages=warning"
# How often blocks that lose are run again: at one level, where a client sees what replay lets pass.
REPLAYS = {"repeatable read": 2}
# Two-phase locking has no stage that reads: a read is a lock.
LOCKING = """SELECT protocol FROM rdmacc.stat_stages GROUP BY protocol
 HAVING bool_or(stage = 'lock') AND NOT bool_or(stage = 'read')"""
# What snapshot isolation allows.
ANOMALIES = ("write-skew", "phantom", "read-only-anomaly", "absent-key")
# Other specs they pass as nowait-shared does, and as what they are with exclusive locks.
SHARING_ALIKE = ("waitdie-shared", "woundwait-shared")
SNAPSHOT_ISOLATION = "repeatable read"
CONFLICTS = ("could not serialize access", "current transaction is aborted",
             "canceling statement due to lock timeout",
             "canceling statement due to a timeout at the protocol gate")
IS_BLOCKED = """
ALTER FUNCTION pg_catalog.pg_isolation_test_session_is_blocked(int, int[])
  RENAME TO stock_isolation_test_session_is_blocked;
CREATE FUNCTION pg_catalog.pg_isolation_test_session_is_blocked(int, int[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  FOR look IN 1 .. 15 LOOP
    IF pg_catalog.stock_isolation_test_session_is_blocked($1, $2) THEN RETURN true; END IF;
    PERFORM pg_catalog.pg_stat_clear_snapshot();
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity($1) a
                   WHERE a.wait_event_type = 'Extension') THEN RETURN false; END IF;
    PERFORM pg_catalog.pg_sleep(0.02);
  END LOOP;
  RETURN true;
END $$;
"""


class Step:
    def __init__(self, name):
        self.name = name
        self.lines = []  # what it printed

    def session(self):
        return re.search(r"\d*$", self.name).group()

    def is_check(self):
        return self.name.startswith("check")


def permutations_of(transcript):
    """[(header, [Step])]; what a step that had to wait prints later is its own, too."""
    found = []
    steps = {}
    step = None
    for line in transcript.split("\n"):
        header = re.match(r"starting permutation: (.*)", line)
        begun = re.match(r"step (\w+):", line)
        if header:
            steps = {}
            step = None
            found.append((header.group(1), []))
        elif begun and found:
            name = begun.group(1)
            if "<... completed>" not in line or name not in steps:
                steps[name] = Step(name)
                found[-1][1].append(steps[name])
            step = steps[name]
        elif step:
            step.lines.append(line)
    return found


def answers_of(step):
    """The values of a result with one row, as isolationtester prints it (None: there is none)."""
    for i, line in enumerate(step.lines):
        if re.fullmatch(r"[-+]+", line) and step.lines[i + 2:i + 3] == ["(1 row)"]:
            return [value.strip() for value in step.lines[i + 1].split("|")]
    return None


def is_serial(steps):
    sessions = [step.session() for step in steps if not step.is_check()]
    changes = sum(a != b for a, b in zip(sessions, sessions[1:]))
    return changes + 1 == len(set(sessions))


def broken_rules(header, steps, allowed):
    if [step.name for step in steps] != header.split():
        yield "its steps are not those that ran: " + " ".join(step.name for step in steps)
    serial = is_serial(steps)
    for step in steps:
        for line in step.lines:
            error = re.match(r"(?:\w+: )?(?:ERROR|FATAL):  (.*)", line)
            if not error:
                continue
            expected = allowed if serial else allowed + CONFLICTS
            if step.is_check() or not error.group(1).startswith(expected):
                yield f"{step.name}: {line}" + (" (a serial permutation)" if serial else "")
        if step.is_check() and set(answers_of(step) or ["no answer"]) != {"t"}:
            yield f"{step.name}: " + " ".join(step.lines)


def judge(spec, transcript):
    """What is wrong in the transcript of a spec."""
    allowed = tuple(re.findall(r"^# may fail with: (.*)", spec, re.M))
    planned = re.findall(r"^permutation (.*)", spec, re.M)
    ran = permutations_of(transcript)
    if [header for header, _ in ran] != [" ".join(each.split()) for each in planned]:
        yield f"{len(ran)} of {len(planned)} permutations ran"
    for header, steps in ran:
        for broken in broken_rules(header, steps, allowed):
            yield f"{header}\n    {broken}"


def database_of(level):
    return "isolation_" + level.replace(" ", "_")


def prepare(box, level):
    database = database_of(level)
    box.psql(f"DROP DATABASE IF EXISTS {database}")
    box.psql(f"CREATE DATABASE {database} TEMPLATE template0")
    box.psql("CREATE EXTENSION rdmacc;" + IS_BLOCKED, dbname=database)


def read_spec(name):
    with open(os.path.join(ROOT, "specs", name + ".spec")) as file:
        return file.read()


def run_spec(box, spec, level, options=""):
    """(transcript, what is wrong)"""
    escaped = level.replace(" ", "\\ ")
    options = (f"{OPTIONS} -c default_transaction_isolation={escaped}"
               f" -c rdmacc.replay_limit={REPLAYS.get(level, 0)} {options}")
    environment = dict(box.environment(), PGOPTIONS=options,
                       PGISOLATIONTIMEOUT=str(STEP_SECONDS_MAX))
    try:
        done = subprocess.run([pgxs_program("test/isolation/isolationtester"),
                               box.connection_string(database_of(level))],
                              env=environment, input=spec, cwd="/", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SPEC_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return "", [f"no end within {SPEC_SECONDS_MAX} s"]
    wrong = list(judge(spec, done.stdout))
    if done.returncode != 0:
        wrong.append(f"isolationtester ended with {done.returncode}")
    return done.stdout, wrong


def variants_of(box):
    """[(name, its kind, options)] of all that promise serializability."""
    protocols = box.psql("SELECT unnest(enumvals) FROM pg_settings"
                         " WHERE name = 'rdmacc.protocol'").split("\n")
    locking = box.psql(LOCKING, dbname=database_of(LEVELS[0])).split("\n")
    kinds = {protocol: "two-phase locking" if protocol in locking else "" for protocol in protocols}
    variants = [(protocol, kind, f"-c rdmacc.protocol={protocol}")
                for protocol, kind in kinds.items()]
    shared = [(f"{protocol}-shared", kind,
               f"-c rdmacc.protocol={protocol} -c rdmacc.lock_mode=shared")
              for protocol, kind in kinds.items() if kind]
    return variants + shared


def listed(spec, what):
    """What a spec's line "# what: a, b" lists."""
    lists = re.findall(rf"^# {what}: (.*)", spec, re.M)
    return [each.strip() for line in lists for each in line.split(",")]


def not_as_on_heaps(box, names):
    """What specs that say so expect of rdmacc tables, and is not so on PostgreSQL's own."""
    for name in names:
        spec = read_spec(name)
        for level in listed(spec, "as on heaps at"):
            for wrong in run_spec(box, spec.replace(" USING rdmacc", ""), level)[1]:
                yield f"not ok - {name} on PostgreSQL's own tables, {level}: {wrong}"


def run_level(box, names, variant, level, output, leaving):
    """One line of a verdict for each spec that breaks a rule. No spec begins once `leaving` is set."""
    variant_name, kind, options = variant
    failures = []
    for name in names:
        if leaving.is_set():
            break
        if {variant_name, kind} & set(listed(read_spec(name), "not under")):
            continue
        transcript, wrong = run_spec(box, read_spec(name), level, options)
        label = f"{name}.{variant_name}.{level.replace(' ', '_')}"
        with open(os.path.join(output, label + ".out"), "w") as file:
            file.write(transcript)
        if wrong:
            failures.append("\n".join(f"not ok - {label}: {each}" for each in wrong))
    return failures


def anomalies_not_found(box):
    """What the judge overlooks on tables that are not ours."""
    for name in ANOMALIES:
        spec = read_spec(name).replace(" USING rdmacc", "")
        _, wrong = run_spec(box, spec, SNAPSHOT_ISOLATION)
        if not any("check" in each for each in wrong):
            yield f"not ok - {name} on PostgreSQL's own tables: nothing was found"


def run(box, names, output):
    """Runs the specs; (passed, failed) counts each spec under each variant at each level. The
    transcripts go to folder `output`."""
    for level in LEVELS:
        prepare(box, level)
    overlooked = list(anomalies_not_found(box))
    print("\n".join(["the judge on PostgreSQL's own tables"] + overlooked), flush=True)
    different = list(not_as_on_heaps(box, names))
    print("\n".join(different), end="\n" if different else "", flush=True)
    failed = len(overlooked) + len(different)
    passed = len(ANOMALIES) - len(overlooked)
    leaving = threading.Event()
    # The levels of a variant beside each other, in a database each; they mostly wait.
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(LEVELS)) as pool:
        try:
            for variant in variants_of(box):
                of_variant = [name for name in names
                              if variant[0] not in SHARING_ALIKE or name in ANOMALIES]
                runs = [pool.submit(run_level, box, of_variant, variant, level, output, leaving)
                        for level in LEVELS]
                failures = [failure for each in runs for failure in each.result()]
                print("\n".join([f"{variant[0]}: {len(of_variant)} specs at {len(LEVELS)} levels"]
                                + failures), flush=True)
                failed += len(failures)
                passed += len(of_variant) * len(LEVELS) - len(failures)
        finally:
            leaving.set()  # the pool waits for what runs, which an interruption must not go on with
    return passed, failed
