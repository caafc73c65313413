"""Conditions and values, by type. Nothing here fails for some rows and not for others: which of them are looked
at depends on the plan."""

COMPARISONS = ("=", "=", "=", "<>", "<", "<=", ">", ">=")


class Reference:
    """A column within a query."""

    def __init__(self, text, kind, unique=False):
        self.text = text
        self.kind = kind
        self.unique = unique  # has each value once


def references(table, alias=None):
    prefix = f"{alias}." if alias else ""
    return [Reference(prefix + column.name, column.kind, [column.name] in table.arbiters) for column in table.columns]


def condition(draw, references_, depth=1):
    if depth > 0 and draw.chance(35):
        one, other = (condition(draw, references_, depth - 1) for _ in range(2))
        return draw.pick((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
    return simple_condition(draw, draw.pick(references_), references_)


def simple_condition(draw, reference, references_):
    text, kind = reference.text, reference.kind
    if not kind.order or draw.chance(8):
        return f"{text} IS {draw.pick(('', 'NOT '))}NULL"
    if draw.chance(25):
        special = of_type(draw, text, kind)
        if special:
            return special
    constant = kind.constant
    form = draw.number(1, 20)
    if form <= 10:
        return f"{text} {draw.pick(COMPARISONS)} {constant(draw)}"
    if form <= 12:
        return f"{text} BETWEEN {constant(draw)} AND {constant(draw)}"
    if form <= 14:
        return f"{text} IN ({', '.join(constant(draw) for _ in range(draw.number(1, 4)))})"
    if form == 15 and kind.family not in ("int4[]", "text[]"):
        several = ", ".join(constant(draw) for _ in range(3))
        # A value that a domain refuses fails where it is made, and that depends on the plan.
        cast = "int4" if kind.family == "small" else kind.cast
        return f"{text} = ANY (ARRAY[{several}]::{cast}[])"
    if form == 16:
        return f"{text} NOT IN ({constant(draw)}, {constant(draw)})"
    if form == 17:
        return f"{text} IS {draw.pick(('', 'NOT '))}DISTINCT FROM {constant(draw)}"
    others = [other for other in references_
              if other.kind.family == kind.family and other.text != text]
    if others:
        return f"{text} {draw.pick(COMPARISONS)} {draw.pick(others).text}"
    return f"{text} >= {constant(draw)}"


def of_type(draw, text, kind):
    """Operators that some types alone have."""
    if kind.family in ("text", "icu"):
        return draw.pick((f"{text} LIKE '{draw.pick(('a%', '%b', 'v1%', '_', 'b_c%'))}'",
                          f"length({text}) % 3 = {draw.number(0, 2)}", f"{text} ~ '^[a-b]'",
                          f"lower({text}) = 'a'", f"{text} ILIKE 'a%'"))
    if kind.family in ("int", "small"):
        return draw.pick((f"{text}::numeric % {draw.number(2, 5)} = {draw.number(0, 2)}",
                          f"{text}::int8::numeric + 1 > {draw.number(0, 9)}",
                          f"{text} > {draw.number(0, 9)}::int8", f"{text} = {draw.number(0, 9)}::int2",
                          f"{text} < {draw.number(0, 9)}.5"))
    if kind.family == "bool":
        return draw.pick((text, f"NOT {text}", f"{text} IS NOT TRUE"))
    if kind.family == "date":
        return draw.pick((f"isfinite({text})", f"{text} < '2020-02-01'", f"{text} >= date '2020-01-01'"))
    if kind.family in ("int4[]", "text[]"):
        return draw.pick((f"cardinality({text}) > {draw.number(0, 2)}", f"{text} @> {kind.constant(draw)}",
                          f"{text} && {kind.constant(draw)}"))
    if kind.family == "jsonb":
        return draw.pick((f"{text} @> '{{\"a\": 1}}'", f"{text} ->> 'a' = '{draw.number(0, 9)}'", f"{text} ? 'b'"))
    if kind.family == "inet":
        return f"{text} << inet '10.0.0.0/8'"
    if kind.family == "pair":
        return f"({text}).x {draw.pick(COMPARISONS)} {draw.number(0, 3)}"
    if kind.family == "int4range":
        return f"{text} @> {draw.number(0, 9)}"
    return None


def value(draw, kind, references_=(), nullable=True, depth=1):
    """Of that type, or one that is assigned to it."""
    if nullable and draw.chance(12):
        return "NULL"
    same = [one for one in references_ if one.kind is kind]
    if depth > 0 and same and draw.chance(60):
        inner = draw.pick(same).text
        form = draw.number(1, 6)
        if form == 1:
            return f"coalesce({inner}, {kind.constant(draw)})"
        if form == 2:
            chosen = condition(draw, list(references_), 0)
            return f"CASE WHEN {chosen} THEN {inner} ELSE {kind.constant(draw)} END"
        if form == 3 and kind.family in ("text", "icu") and kind.cast == "text":
            return draw.pick((f"upper({inner})", f"left({inner} || 'x', 40)", f"reverse({inner})"))
        if form == 3 and kind.family == "int":
            return f"(({inner})::numeric * -1 % 30000)::{kind.cast}"
        if form == 4 and kind.family == "float":
            return f"-{inner}"
        if form == 4 and kind.name == "numeric(8,2)":
            return f"({inner} + 1) % 1000"
        return inner
    return kind.constant(draw)
