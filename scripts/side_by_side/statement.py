"""A statement of a program, and what a side said to it. Where the sides need different words the text has
a mark."""

import dataclasses

MARKS = {
    # A heap judges a constraint that can wait when the statement has ended, as rdmacc does with all of them.
    "heap": {"@ORDERED@": "", "@ACCESS@": "heap", "@OPTION@": "(fillfactor = 90)",
             "@AT_END@": "DEFERRABLE INITIALLY IMMEDIATE"},
    "rdmacc": {"@AT_END@": "", "@ORDERED@": "WITH (rdmacc.ordered_key = on)", "@ACCESS@": "rdmacc",
               "@OPTION@": "(rdmacc.ordered_key = on)"},
}


@dataclasses.dataclass
class Statement:
    text: str
    order: int = 0  # so many of the first columns have an order
    settled: bool = False  # which error is raised does not depend on the order of rows
    data: str = None  # what COPY FROM STDIN is sent

    def on(self, side):
        text = self.text
        for mark, words in MARKS[side].items():
            text = text.replace(mark, words)
        return text

    def __str__(self):
        return self.text + ";" + (f"\n{self.data}\\." if self.data is not None else "")


@dataclasses.dataclass
class Outcome:
    state: str = ""  # SQLSTATE, of an error
    message: str = ""
    detail: str = None
    tag: str = ""  # INSERT 0 1
    columns: tuple = ()  # (name, type's oid)
    rows: list = None  # of texts
    in_block: bool = False  # a transaction block is open afterwards
    in_error: bool = False
    lost: bool = False  # to a conflict, or refused: the block is gone on both sides

    @property
    def good(self):
        return not self.state and not self.lost
