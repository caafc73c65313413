"""Types of columns. Each has a small pool of values, so that statements meet rows, and an expression that
makes a value out of a number i, for many rows at once. Values that are equal and print otherwise
(numeric 1 and 1.0) are in the pools of numeric and float alone, where the comparison knows them."""

import re

LONG = ("", "short", "x" * 3000, "long " * 700, "ä" * 2500)


class ColumnType:
    def __init__(self, name, family, values, of_number, key=True, order=True, sums=False, wide=True):
        self.name = name
        self.cast = name.split(" COLLATE")[0]
        self.family = family  # of types whose values compare with each other
        self.values = values  # as text
        self.of_number = of_number
        self.key = key  # may be in an index
        self.order = order  # has = and <
        self.sums = sums
        self.wide = wide  # has so many values that a join by equality stays small

    def __deepcopy__(self, _):
        return self

    def literal(self, value):
        if value is None:
            return "NULL"
        if self.family in ("int", "small"):
            return value if not value.startswith("-") else f"({value})"
        return "'" + value.replace("'", "''") + "'::" + self.cast

    def value(self, draw):
        return draw.pick(self.values)

    def constant(self, draw):
        """Of the pool, or one that rows have which were made of numbers."""
        if draw.chance(25):
            return re.sub(r"\bi\b", str(draw.number(0, 60)), self.of_number)
        return self.literal(self.value(draw))


def words(text):
    return text.split()


INTEGERS = words("0 1 2 3 4 5 6 7 8 9 10 12 15 20 -1 -7")
TEXTS = ["", "a", "A", "ab", "abc", "b", "b_c", "10", "9", "o'quote", "a b", "ä", "Zebra", "back\\slash",
         "50%", "zz"]

INT4 = ColumnType("int4", "int", INTEGERS + ["2147483647", "-2147483648"], "i", sums=True)
TEXT = ColumnType("text", "text", TEXTS, "('v' || i)")
LONG_TEXT = ColumnType("text", "text", LONG, "repeat('v' || i, i % 400)", key=False)

TYPES = {
    "int2": ColumnType("int2", "int", INTEGERS + ["32767"], "(i % 3000)::int2", sums=True),
    "int4": INT4,
    "int8": ColumnType("int8", "int", INTEGERS + ["9223372036854775807", "5000000000"], "(i * 1000000007::int8)",
                       sums=True),
    "numeric": ColumnType("numeric", "numeric", words("0 1 1.0 1.00 2.5 -3.75 10 100 1e10 NaN 0.001"),
                          "(i / 8.0)"),
    "numeric(8,2)": ColumnType("numeric(8,2)", "numeric", words("0 1 1.25 2.50 -3.75 10 999.99"),
                               "round(i / 4.0, 2)", sums=True),
    "float4": ColumnType("float4", "float", words("0 -0 0.5 1.25 -2.5 1024 NaN Infinity"), "(i / 8.0)::float4"),
    "float8": ColumnType("float8", "float", words("0 -0 0.5 1.25 -2.5 1024 0.125 -Infinity NaN"),
                         "(i / 8.0)::float8"),
    "text": TEXT,
    "text icu": ColumnType('text COLLATE "und-x-icu"', "icu", TEXTS, "('v' || i)"),
    "varchar": ColumnType("varchar(20)", "text", TEXTS, "('v' || i)"),
    "char": ColumnType("char(6)", "char", ["", "a", "A", "ab", "b", "zz", "a b", "ä"], "('c' || i % 9999)"),
    "bytea": ColumnType("bytea", "bytea", ["", "\\x00", "\\x0001", "\\xff", "\\x616263", "\\xdeadbeef"],
                        "decode(md5(i::text), 'hex')"),
    "bool": ColumnType("bool", "bool", ["t", "f"], "(i % 2 = 0)", wide=False),
    "date": ColumnType("date", "date", ["2020-01-01", "2020-02-29", "1999-12-31", "infinity", "0044-03-15 BC"],
                       "(date '2020-01-01' + i)"),
    "timestamp": ColumnType("timestamp", "date", ["2020-01-01 00:00:00", "2020-02-29 12:34:56.789",
                                                  "1999-12-31 23:59:59", "-infinity"],
                            "(timestamp '2020-01-01' + i * interval '1 minute')"),
    "timestamptz": ColumnType("timestamptz", "date", ["2020-01-01 00:00:00+00", "2020-02-29 12:34:56+02",
                                                      "1999-12-31 23:59:59-08", "infinity"],
                              "(timestamptz '2020-01-01 UTC' + i * interval '1 minute')"),
    "time": ColumnType("time", "time", ["00:00:00", "12:34:56", "24:00:00", "23:59:59.5"],
                       "(time '00:00' + i * interval '1 second')"),
    "interval": ColumnType("interval", "interval", ["00:00:00", "00:00:05", "1 mon", "1 year 2 mons", "-3 days"],
                           "(i * interval '1 minute')"),
    "uuid": ColumnType("uuid", "uuid", ["00000000-0000-0000-0000-00000000000%d" % i for i in range(6)],
                       "md5(i::text)::uuid"),
    "jsonb": ColumnType("jsonb", "jsonb", ['{}', '{"a": 1}', '{"a": 2, "b": "x"}', '[1, 2]', 'null', '"s"', '3'],
                        "jsonb_build_object('a', i % 10, 'b', 'v' || i)"),
    "int4[]": ColumnType("int4[]", "int4[]", ["{}", "{1}", "{1,2}", "{NULL}", "{{1,2},{3,4}}", "{5,NULL,7}"],
                         "ARRAY[i % 5, i]"),
    "text[]": ColumnType("text[]", "text[]", ["{}", "{a}", "{a,b}", "{NULL}", '{"a b",""}'], "ARRAY['v' || i, NULL]"),
    "mood": ColumnType("mood", "mood", ["sad", "ok", "happy", "Angry"], "('{sad,ok,happy}'::mood[])[1 + i % 3]",
                       wide=False),
    "small": ColumnType("small", "small", INTEGERS + ["-50"], "(i % 900)::small", sums=True),
    "inet": ColumnType("inet", "inet", ["10.0.0.1", "10.0.0.0/8", "10.0.0.1/8", "::1", "192.168.1.5"],
                       "('10.0.' || i / 250 % 250 || '.' || i % 250)::inet"),
    "macaddr": ColumnType("macaddr", "macaddr", ["08:00:2b:01:02:03", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"],
                          "'08:00:2b:01:02:03'::macaddr", wide=False),
    "pair": ColumnType("pair", "pair", ["(1,a)", "(1,b)", "(2,)", "(,)", "(-1,zz)"], "ROW(i % 7, 'p' || i)::pair"),
    "int4range": ColumnType("int4range", "int4range", ["empty", "[1,3)", "[1,4)", "(,5)", "[7,)"],
                            "int4range(i, i + 3)"),
    "varbit": ColumnType("varbit", "varbit", ["", "0", "1", "101", "0000000011"], "i::bit(12)::varbit"),
    "json": ColumnType("json", "json", ['{"a": 1}', "[1]", "null"], "json_build_object('a', i)", key=False,
                       order=False),
    "point": ColumnType("point", "point", ["(1,2)", "(0,0)"], "point(i, -i)", key=False, order=False),
    "long text": LONG_TEXT,
}

# What a schema's own types are made of.
OWN_TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'Angry')",
    "CREATE DOMAIN small AS int4 CHECK (VALUE > -20)",
    "CREATE TYPE pair AS (x int4, y text)",
)
# More often than others: what most tables have.
COMMON = ("int4", "int4", "int4", "text", "text", "int8", "numeric(8,2)", "timestamptz", "bool")


def drawn(draw, key=False):
    while True:
        kind = TYPES[draw.pick(COMMON) if draw.chance(45) else draw.pick(list(TYPES))]
        if kind.key or not key:
            return kind
