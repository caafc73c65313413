"""What the generator knows of a program's tables: enough to draw statements that mostly succeed. What fails
on both sides is a comparison as good as any."""

import copy
import dataclasses

from side_by_side.column_types import ColumnType


@dataclasses.dataclass
class Column:
    name: str
    kind: ColumnType
    nullable: bool = True
    has_default: bool = False
    given: bool = True  # values may be written: it is neither generated nor an identity
    identity: bool = False


@dataclasses.dataclass
class Table:
    name: str
    columns: list
    key: list = dataclasses.field(default_factory=list)  # names of the primary key's columns
    uniques: list = dataclasses.field(default_factory=list)  # lists of names
    kind: str = "table"  # table, partitioned, view, matview
    parent: str = None  # the table that a foreign key refers to
    child_columns: list = dataclasses.field(default_factory=list)  # those of the foreign key
    indexes: list = dataclasses.field(default_factory=list)
    indexed: list = dataclasses.field(default_factory=list)  # lists of names, of columns that indexes have
    constraints: list = dataclasses.field(default_factory=list)
    stock: bool = False  # USING heap on both sides
    inherited: bool = False  # from, or by, another one
    mirrored: bool = False  # it has unique indexes that cannot arbitrate: partial, of expressions, deferrable
    watched: bool = False  # a row's trigger counts the table's rows
    # Unique columns of which one statement may move the values onto each other.
    moving: list = dataclasses.field(default_factory=list)

    def column(self, name):
        return next(column for column in self.columns if column.name == name)

    @property
    def keyed(self):
        """Names of columns of which values are unique, alone or together."""
        return {name for names in [self.key, *self.uniques] for name in names}

    @property
    def written(self):
        return [column for column in self.columns if column.given]

    @property
    def free(self):
        """Columns that any statement may set to anything, in many rows."""
        return [column for column in self.written if column.name not in self.keyed]

    @property
    def arbiters(self):
        if self.kind not in ("table", "partitioned"):
            return []
        return [names for names in [self.key, *([] if self.mirrored else self.uniques)] if names]


@dataclasses.dataclass
class Model:
    tables: list = dataclasses.field(default_factory=list)
    functions: list = dataclasses.field(default_factory=list)  # (name, table): how many rows it has
    count: int = 0  # of names given

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def snapshot(self):
        return copy.deepcopy(self.tables)

    def restore(self, tables):
        self.tables = tables

    def readable(self):
        return self.tables

    def writable(self):
        return [table for table in self.tables if table.kind != "matview"]

    def plain(self):
        return [table for table in self.tables if table.kind in ("table", "partitioned")]

    def find(self, name):
        return next((table for table in self.tables if table.name == name), None)
