"""PostgreSQL's extended protocol, message by message: several portals of one prepared statement at once,
and some of their rows."""

import os
import socket
import struct

TIMEOUT_S = 60


class Wire:
    """A connection as postgres by the server's socket, which trusts it."""

    def __init__(self, box, dbname="postgres"):
        environment = box.environment(dbname)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_S)
        self.held = None
        self.socket.connect(os.path.join(environment["PGHOST"], f".s.PGSQL.{environment['PGPORT']}"))
        start = struct.pack("!I", 196608) + f"user\0postgres\0database\0{dbname}\0\0".encode()
        self.socket.sendall(struct.pack("!I", len(start) + 4) + start)
        self.read_until_ready()

    def close(self):
        self.socket.close()

    def message(self, kind, body=b""):
        message = kind.encode() + struct.pack("!I", len(body) + 4) + body
        if self.held is None:
            self.socket.sendall(message)
        else:
            self.held += message

    def hold(self):
        """Messages from now on leave together, with the next Sync, as clients' libraries send them."""
        self.held = b""

    def read(self, count):
        got = b""
        while len(got) < count:
            part = self.socket.recv(count - len(got))
            if not part:
                raise ConnectionError("the server has closed the connection")
            got += part
        return got

    def read_until_ready(self):
        """What the server says until it is ready: rows as lists of texts, completions, "error 40001", "suspended",
        "copy in 0 2" (the format and the number of columns)."""
        said = []
        while True:
            kind, length = struct.unpack("!cI", self.read(5))
            body = self.read(length - 4)
            if kind == b"D":
                said.append(values_of(body))
            elif kind == b"C":
                said.append(body.rstrip(b"\0").decode())
            elif kind == b"E":
                fields = dict((part[:1], part[1:]) for part in body.split(b"\0") if part)
                said.append("error " + fields[b"C"].decode())
            elif kind == b"G":
                said.append("copy in {} {}".format(*struct.unpack("!BH", body[:3])))
            elif kind == b"s":
                said.append("suspended")
            elif kind == b"Z":
                return said

    def query(self, sql):
        self.message("Q", sql.encode() + b"\0")
        return self.read_until_ready()

    def copy(self, sql, *data, end="c", reason=b""):
        """COPY FROM STDIN, in one go: the server reads what follows its statement when it wants it."""
        self.message("Q", sql.encode() + b"\0")
        return self.copied(*data, end=end, reason=reason)

    def copied(self, *data, end="c", reason=b""):
        for part in data:
            self.message("d", part)
        self.message(end, reason)
        return self.read_until_ready()

    def prepare(self, name, sql):
        self.message("P", f"{name}\0{sql}\0".encode() + struct.pack("!H", 0))

    def bind(self, portal, statement, *parameters):
        body = f"{portal}\0{statement}\0".encode() + struct.pack("!HH", 0, len(parameters))
        for parameter in parameters:
            text = str(parameter).encode()
            body += struct.pack("!I", len(text)) + text
        self.message("B", body + struct.pack("!H", 0))

    def execute(self, portal, rows=0):
        self.message("E", f"{portal}\0".encode() + struct.pack("!I", rows))

    def run(self, statement, *parameters):
        """One prepared statement, in the unnamed portal."""
        self.bind("", statement, *parameters)
        self.execute("")
        return self.sync()

    def close_statement(self, name):
        self.message("C", f"S{name}\0".encode())

    def close_portal(self, portal):
        self.message("C", f"P{portal}\0".encode())

    def sync(self):
        self.message("S")
        if self.held is not None:
            self.socket.sendall(self.held)
            self.held = None
        return self.read_until_ready()


def values_of(row):
    values, at = [], 2
    for _ in range(struct.unpack("!H", row[:2])[0]):
        length = struct.unpack("!i", row[at:at + 4])[0]
        at += 4
        values.append(None if length < 0 else row[at:at + length].decode())
        at += max(length, 0)
    return values
