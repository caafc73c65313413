"""What no concurrent run reaches, and the list of reasons for it (unreached.txt)."""

import fnmatch
import os
import re
from dataclasses import dataclass

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unreached.txt")
# Branches are counted where the source decides something; elsewhere they are the compiler's, of
# destructors and of statics.
DECIDES = re.compile(r"\b(if|while|for|switch|case)\b|&&|\|\||\?|RDMACC_RETURN_IF_ERROR")


@dataclass(frozen=True)
class Line:
    path: str
    number: int
    text: str
    function: str   # that it stands in, as far as it is known
    executed: bool  # but not all of its branches are
    branches: int   # that no run takes
    branches_all: int


@dataclass(frozen=True)
class Rule:
    path: str  # a pattern
    what: str  # *, function(), /regular expression/ over the line, or "branch" and one of these:
               # of a line that is executed, though not with all of its branches
    reason: str

    def is_of_chance(self):
        """Other seeds, or another schedule of these, reach it now and then."""
        return self.reason.startswith("chance: ")

    def explains(self, line):
        if self.what.startswith("branch ") and not line.executed:
            return False
        return self.is_about(line)

    def is_about(self, line):
        if not fnmatch.fnmatch(line.path, self.path):
            return False
        what = self.what.removeprefix("branch ")
        if what == "*":
            return True
        if what.startswith("/"):
            return re.search(what[1:-1], line.text) is not None
        return ("::" + line.function).endswith("::" + what[:-2])


def parse(text):
    rules = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" | ")]
        sound = len(fields) == 3 and all(fields) and (
            re.fullmatch(r"(branch )?(\*|/.+/|[\w:~]+\(\))", fields[1]))
        if not sound:
            raise ValueError(f"unreached.txt:{number}: not a path, a place and a reason")
        rules.append(Rule(*fields))
    return rules


def read_rules():
    with open(LIST, encoding="utf-8") as file:
        return parse(file.read())


def explain(missed, rules, lines=()):
    """(missed lines that no rule explains, rules that explain nothing). One of chance may explain
    nothing this time, but has to be about some of `lines`."""
    used, left = set(), []
    for line in missed:
        explained = [rule for rule in rules if rule.explains(line)]
        used.update(explained)
        if not explained:
            left.append(line)
    unused = [rule for rule in rules if rule not in used]
    return left, [rule for rule in unused
                  if not (rule.is_of_chance() and any(rule.is_about(line) for line in lines))]
