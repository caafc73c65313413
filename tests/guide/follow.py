#!/usr/bin/env python3
"""Follows docs/writing_a_protocol.md. Without --whole: its code is as short as it says, its line of
registration fits the list, and its commands run, with WAITDIE in the protocol's place, which the engine
does not have; what takes a server or a build is only looked for.

    tests/guide/follow.py
    tests/guide/follow.py --whole=FOLDER      does all that it says in a copy of the tree there"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = "docs/writing_a_protocol.md"
LIST = "engine/txn/rule/protocol_list.h"
LINES_MAX = 60
STAND_IN = "waitdie"
LIMIT_S = 60
# What the page's commands take is cut down.
SHORTER = ((r"-T \d+", "-T 0.2"), (r"--seeds=\d+", "--seeds=2"),
           (r"(rdmacc_bench \w+)", r"\1 --records=1000"))


class Unmet(Exception):
    pass


def true(condition, what):
    if not condition:
        raise Unmet(what)


def read(path, root=ROOT):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def write(path, text, root):
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", read(PAGE), re.S | re.M)


def source():
    """(the file that the page creates, its text)"""
    name = re.search(r"^Create `([\w/]+\.cc)`:$", read(PAGE), re.M)
    true(name and len(blocks("cpp")) == 1, "the page creates one file")
    return name.group(1), blocks("cpp")[0]


def changes():
    """[(text before, text after)] of the page's diffs: the registration, then the fault."""
    found = []
    for block in blocks("diff"):
        lines = [(line[:1], line[1:]) for line in block.splitlines()]
        found.append(tuple("".join(text + "\n" for sign, text in lines if sign != other)
                           for other in "+-"))
    true(len(found) == 2, "the page has a diff that registers the protocol, and one with a fault")
    return found


def changed(text, change):
    before, after = change
    # The list's lines end in a backslash, in whatever column.
    pattern = re.sub(r"(\\ )+(\\\\)", r" +\2", re.escape(before))
    true(len(re.findall(pattern, text)) == 1, f"there is no {before!r}")
    return re.sub(pattern, lambda _: after, text)


def protocol():
    """(its name in the code, its name in commands)"""
    registered = re.search(r'each\((\w+), "(\w+)", \d+\)', changes()[0][1].split("\n")[1])
    true(registered, "the second line of the first diff registers it")
    return registered.groups()


def its_source_is_short():
    path, text = source()
    lines = [line for line in text.splitlines()
             if line.strip() and not line.lstrip().startswith("//")]
    true(len(lines) < LINES_MAX, f"{len(lines)} lines of code, {LINES_MAX} are too many")
    true(not os.path.exists(os.path.join(ROOT, path)), f"{path} exists: the page needs another")
    true(f"k{protocol()[0]}Rules = {{" in text, "its rules are named as the list names them")


def its_line_takes_the_next_number():
    numbers = re.compile(r'each\(\w+, "\w+", (\d+)\)')
    before = read(LIST)
    after = changed(before, changes()[0])
    given = set(numbers.findall(after)) - set(numbers.findall(before))
    true(given == {str(len(numbers.findall(before)))}, f"the next number, and not {given}")


def commands():
    """The page's commands, each with its here-document."""
    found = []
    for block in blocks("sh"):
        end = None
        for line in block.splitlines():
            if end is None:
                found.append(line)
                here = re.search(r"<<'(\w+)'$", line)
                end = here.group(1) if here else None
            else:
                found[-1] += "\n" + line
                end = None if line == end else end
    return found


def run(command):
    done = subprocess.run(command, shell=True, cwd=ROOT, text=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    true(done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def try_command(command):
    """False: it is only there."""
    words = shlex.split(command.split("\n")[0])
    standing_in = command.replace(protocol()[1], STAND_IN)
    for pattern, shorter in SHORTER:
        standing_in = re.sub(pattern, shorter, standing_in)
    if words[0].endswith("_test"):  # whose tests have been run; but has the filter any?
        true("  " in run(standing_in + " --gtest_list_tests"), f"{command}: no test")
    elif words[0].startswith("build/"):
        run(standing_in)
    else:
        path = words[0] if "/" in words[0] else shutil.which(words[0])
        true(path and os.access(os.path.join(ROOT, path), os.X_OK), f"{command}: no such program")
        return False
    return True


def its_commands_run():
    all_of_them = commands()
    tried = sum(try_command(command) for command in all_of_them)
    true(tried >= 7, f"{tried} commands were tried")
    print(f"  {tried} of {len(all_of_them)} commands were run")


def copy_tree(folder):
    os.makedirs(folder)
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                           check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(lambda each: os.path.isfile(os.path.join(ROOT, each)), filter(None, names)):
        os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), os.path.join(folder, name))


def follow_in(folder):
    """All that the page says. A folder that is there has been begun before."""
    path, text = source()
    if not os.path.exists(folder):
        copy_tree(folder)
        write(LIST, changed(read(LIST, folder), changes()[0]), folder)
    write(path, text, folder)
    try:
        for command in commands():
            print(f"$ {command}", flush=True)
            true(subprocess.run(["bash", "-c", command], cwd=folder).returncode == 0, command)
    except Unmet:
        for command in filter(lambda each: "sandbox-stop" in each, commands()):
            subprocess.run(command, shell=True, cwd=folder)
        raise
    write(path, changed(text, changes()[1]), folder)
    build = "cmake --build --preset release --target rdmacc_campaign"
    true(subprocess.run(build, shell=True, cwd=folder).returncode == 0, build)
    campaign = next(each for each in commands() if "rdmacc_campaign" in each)
    print(f"$ {campaign}", flush=True)
    true(subprocess.run(campaign, shell=True, cwd=folder).returncode != 0, "the fault is noticed")
    write(path, text, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--whole", metavar="FOLDER")
    arguments = parser.parse_args()
    checks = [its_source_is_short, its_line_takes_the_next_number]
    if arguments.whole:
        checks.append(lambda: follow_in(os.path.abspath(arguments.whole)))
    else:
        checks.append(its_commands_run)
    failed = 0
    for check in checks:
        try:
            check()
        except Unmet as unmet:
            failed += 1
            print(f"not ok - {unmet}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
