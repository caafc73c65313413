"""psql kept open, asked with a time limit: what a statement printed, how long it took by psql's own
timing, and the first error with its SQLSTATE."""

import re
import subprocess
import threading

TIME = re.compile(r"^Time: ([\d.]+) ms")
ERROR = re.compile(r"^(?:ERROR|FATAL|PANIC):  (\w{5}): (.*)")
CANCELLED = "57014"
GRACE_S = 30  # for a server that does not keep its statement_timeout


class Error:
    def __init__(self, state, message):
        self.state = state
        self.message = message

    def __str__(self):
        return f"{self.state} {self.message}".strip()


class Answer:
    def __init__(self, lines, ended):
        self.milliseconds = sum(float(match.group(1)) for match in map(TIME.match, lines) if match)
        errors = [match for match in map(ERROR.match, lines) if match]
        self.error = Error(*errors[0].groups()) if errors else None
        self.ended = ended
        if ended:
            state, message = errors[0].groups() if errors else ("", " ".join(lines[-2:])[:200])
            self.error = Error(state, "the connection was lost: " + message)
        self.rows = [line for line in lines if not TIME.match(line)]


class Psql:
    def __init__(self, command, environment, variables):
        self.process = subprocess.Popen(
            [*command, "-v", "VERBOSITY=verbose"], env=environment, cwd="/", text=True,
            errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, bufsize=1)
        self.ended = False
        self.count = 0
        for name, value in variables.items():
            self.set(name, value)
        self.run("\\timing on", GRACE_S)

    def set(self, name, value):
        self._send("\\set {} '{}'".format(name, str(value).replace("'", "''")))

    def _send(self, text):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.ended = True

    def run(self, text, limit_s):
        """psql is killed when there is no answer within the limit and some grace."""
        self.count += 1
        mark = f":done{self.count}:"
        killer = threading.Timer(limit_s + GRACE_S, self.process.kill)
        killer.start()
        try:
            self._send(f"{text}\n\\echo {mark}")
            lines = []
            for line in self.process.stdout:
                if line.rstrip("\n") == mark:
                    return Answer(lines, False)
                lines.append(line.rstrip("\n"))
        finally:
            killer.cancel()
        self.ended = True
        return Answer(lines, True)

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
