"""Whether all rdmacc tables of a database are sound, at the end of a storm."""

from harness import equal, retried

TABLES = ("SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
          " WHERE a.amname = 'rdmacc' AND c.relkind IN ('r', 'm') ORDER BY 1")


def verify(box, what, dbname="postgres", losses=False):
    """`losses`: sessions or nodes were killed, and with them requests to free or to allocate units,
    which may be leaked until the node starts again."""
    tables = [name for name in box.psql(TABLES, dbname).split("\n") if name]
    for number, table in enumerate(tables):
        units = "true" if number == 0 else "false"
        found = retried(box, f"SELECT * FROM rdmacc.verify('{table}', {units})", dbname=dbname)
        lines = [line for line in (found.stdout + found.stderr).split("\n") if line]
        if losses:
            lines = [line for line in lines if not line.startswith(("leaked slot", "leaked block"))]
        equal(lines, [], f"{what}: what is wrong with {table}")
