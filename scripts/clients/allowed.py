"""tests/clients/allowed.txt: which tests differ, and why. CLIENT | TEST | REASON, where TEST may
have the wildcards of a shell."""

import fnmatch
import os

from sandbox import ROOT

PATH = os.path.join(ROOT, "tests/clients/allowed.txt")


class Allowed:
    def __init__(self, path=PATH):
        self.rules = {}  # (client, pattern): how many differences it has taken
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                fields = [field.strip() for field in line.split(" | ")]
                if len(fields) != 3 or not all(fields):
                    raise ValueError(f"allowed.txt, line {number}: not CLIENT | TEST | REASON")
                self.rules[fields[0], fields[1]] = 0

    def takes(self, client, test):
        for (of, pattern), count in self.rules.items():
            if of == client and fnmatch.fnmatchcase(test, pattern):
                self.rules[of, pattern] = count + 1
                return True
        return False

    def unused(self):
        return [" | ".join(rule) for rule, count in self.rules.items() if count == 0]
