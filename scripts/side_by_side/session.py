"""A session on a thread of its own, so that a statement that waits keeps nothing else, and one that never
ends is noticed."""

import io
import queue
import threading

import psycopg2
import psycopg2.extensions

from side_by_side.statement import Outcome

STATEMENT_SECONDS = 20
SECONDS_MAX = 40  # for a server that does not keep its statement_timeout

# Every value as the server prints it.
psycopg2.extensions.string_types.clear()


class Hang(Exception):
    """A statement that neither ends nor can be ended by its timeout."""


class Session:
    def __init__(self, side, where, settings, words=None):
        self.side = side
        self.words = words or side  # whose words statements have
        self.settings = settings
        self.connection = psycopg2.connect(where, options=" ".join(
            f"-c {name}={value}".replace(" ", "\\ ").replace("-c\\ ", "-c ", 1) for name, value in settings.items()))
        self.connection.autocommit = True
        self.pid = self.connection.info.backend_pid
        self.asked, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            statement = self.asked.get()
            if statement is None:
                return
            self.answers.put(self._carry_out(statement))

    def _carry_out(self, statement):
        text = statement.on(self.words)
        outcome = Outcome()
        try:
            with self.connection.cursor() as cursor:
                if statement.data is not None:
                    cursor.copy_expert(text, io.StringIO(statement.data))
                elif text.startswith("COPY ") and text.split(" (FORMAT")[0].endswith(" TO STDOUT"):
                    lines = io.StringIO()
                    cursor.copy_expert(text, lines)
                    outcome.rows = [(line,) for line in lines.getvalue().split("\n")]
                else:
                    cursor.execute(text)
                    if cursor.description is not None:
                        outcome.columns = tuple((one.name, one.type_code) for one in cursor.description)
                        outcome.rows = cursor.fetchall()
                outcome.tag = cursor.statusmessage
        except psycopg2.Error as error:
            outcome.state = error.pgcode or "lost connection"
            outcome.message = (error.diag.message_primary or str(error)).strip()
            outcome.detail = error.diag.message_detail
        status = self.connection.info.transaction_status
        outcome.in_block = self.in_block()
        outcome.in_error = status == psycopg2.extensions.TRANSACTION_STATUS_INERROR
        return outcome

    def in_block(self):
        """Of a session at rest."""
        return self.connection.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE

    def send(self, statement):
        self.asked.put(statement)

    def answer(self, seconds):
        """None if there is none within that time."""
        try:
            return self.answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def run(self, statement):
        self.send(statement)
        outcome = self.answer(SECONDS_MAX)
        if outcome is None:
            raise Hang(f"no end within {SECONDS_MAX} s on {self.side}: {statement}")
        return outcome

    def close(self):
        """Of a session that still works at something the server is told to end it."""
        self.asked.put(None)
        try:
            self.connection.cancel()
            self.connection.close()
        except psycopg2.Error:
            pass
