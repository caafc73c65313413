"""The allow-list of the differences between PostgreSQL's regression tests on heap and on rdmacc
tables; tests/pg_suite/README.md says how it is written."""

import fnmatch
import re

KINDS = ("refusal", "internal", "pending", "answer", "hash")
ABORTED = "current transaction is aborted, commands ignored until end of transaction block"
NEVER = re.compile(r"server closed the connection|connection to server was lost|PANIC"
                   r"|canceling statement due to statement timeout|unrecognized (node|token)")
NAMES = re.compile(r'"([^"]+)"')
# What a statement would have made or taken away, had it not been refused.
MADE = re.compile(
    r"\b(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+|LOCAL\s+|UNLOGGED\s+|UNIQUE\s+)?"
    r"(?:TABLE|INDEX|PUBLICATION|VIEW|MATERIALIZED\s+VIEW|SCHEMA)\s+(?:CONCURRENTLY\s+)?"
    r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?([\w.\"]+)", re.I)
WORDS = re.compile(r"[a-z_]\w*")


class Rule:
    def __init__(self, number, text):
        fields = re.split(r"\s+\|\s+", text)
        if len(fields) != 4 or fields[1] not in KINDS or not fields[3]:
            raise ValueError(f"allowed.txt, line {number}: not FILES | KIND | PATTERN | REASON")
        self.files, self.kind, self.pattern, self.reason = fields
        self.refuses = self.kind in ("refusal", "internal", "pending")
        self.regex = None if self.kind == "hash" else re.compile(self.pattern, re.S)

    def takes(self, difference):
        if not fnmatch.fnmatch(difference.file, self.files):
            return False
        if self.kind == "hash":
            return difference.key == self.pattern
        if self.refuses:
            return any(self.regex.search(error) for error in difference.errors)
        # An error that is not refused by name is no other answer.
        if set(difference.errors) - set(difference.control_errors):
            return False
        return bool(self.regex.search("\n".join(
            [difference.sql, "--- " + difference.kind, difference.control, "+++", difference.ours])))


class Allowed:
    def __init__(self, path):
        self.rules = []
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    self.rules.append(Rule(number, line.strip()))

    def internal(self, name, message):
        """Is an internal error of that file one of PostgreSQL's own?"""
        return any(rule.kind == "internal" and fnmatch.fnmatch(name, rule.files)
                   and rule.regex.search(message) for rule in self.rules)

    def judge(self, found):
        """(difference, rule or None, whether it follows from another) for the differences of one
        file, in its order. A refused statement makes others differ: those that name what it would
        have made, and the rest of its transaction."""
        missing = {}  # what refused statements would have made: the rule
        aborted = None
        for difference in found:
            if NEVER.search(difference.ours):
                yield difference, None, False
                continue
            rule = next((rule for rule in self.rules if rule.takes(difference)), None)
            follows = rule is None
            if follows:
                rule = self._cause(difference, missing, aborted)
            elif rule.refuses:
                aborted = rule
            if rule is not None and rule.refuses and ABORTED not in difference.errors:
                for name in self._made_by(difference):
                    missing.setdefault(name, rule)
            yield difference, rule, follows

    @staticmethod
    def _made_by(difference):
        names = [name.split(".")[-1].strip('"').lower()
                 for name in MADE.findall(difference.sql)]
        for error in difference.errors:
            names += [name.lower() for name in NAMES.findall(error)[:1]]
        return names

    @staticmethod
    def _cause(difference, missing, aborted):
        """The rule by which a statement before this one was refused, if that explains it: the rest
        of its transaction, and whatever names, or in the control shows, what it would have made."""
        new = set(difference.errors) - set(difference.control_errors)
        if ABORTED in new:
            return aborted
        shown = "\n".join([difference.sql, difference.control, *new]).lower()
        return next((missing[name] for name in WORDS.findall(shown) if name in missing), None)
