#!/usr/bin/env python3
"""The SQL session of README.md: its statements are run, and print what stands there."""

import os
import re

from harness import Session, equal, run, true
from sandbox import ROOT

PROMPT = re.compile(r"^(\w+)=> (.*)$")
# Times, and the width of a plan that contains them, differ from run to run.
VARYING = ((r"actual time=[\d.]+", "actual time=t"), (r"-{3,}", "---"), (r"[ \t]+", " "))


def session_text():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"^```sql\n(.*?)^```$", file.read(), re.S | re.M)
    equal(len(blocks), 1, "SQL sessions in README.md")
    return blocks[0]


def statements_of(text):
    """[(session's name, statement, expected output)]"""
    statements = []
    for line in text.splitlines():
        prompt = PROMPT.match(line)
        if prompt:
            statements.append((prompt.group(1), prompt.group(2), []))
        else:
            true(statements, f"the text begins with a prompt, not with {line!r}")
            statements[-1][2].append(line)
    return [(name, sql, "\n".join(output)) for name, sql, output in statements]


def comparable(output):
    for pattern, stands_for in VARYING:
        output = re.sub(pattern, stands_for, output)
    return "\n".join(line.strip() for line in output.strip().split("\n"))


def run_statements(box, statements):
    """What each statement printed, in the session that its prompt names."""
    sessions = {}
    try:
        for name, sql, _ in statements:
            session = sessions.setdefault(name, Session(box, options=()))
            yield session.run(sql)
    finally:
        for session in sessions.values():
            session.close()


def the_session_prints_what_the_readme_says(box):
    box.start()
    statements = statements_of(session_text())
    true(any("EXPLAIN" in sql for _, sql, _ in statements), "a plan is shown")
    true(any("could not serialize" in said for _, _, said in statements), "a conflict is shown")
    for (name, sql, expected), printed in zip(statements, run_statements(box, statements)):
        equal(comparable(printed), comparable(expected), f"{name}: {sql}")


run(the_session_prints_what_the_readme_says, settings={"rdmacc.nodes": 2}, extension=False)
