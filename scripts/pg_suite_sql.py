"""What the judge of PostgreSQL's regression tests reads of SQL: what orders a statement, what its
columns are, and what a cursor or a prepared statement stands for. It goes by words and parentheses:
where they do not tell, it finds nothing, and nothing is open."""

import re

ORDER_BY = re.compile(r"\border\s+by\b", re.I)
ORDER_ENDS = re.compile(r"\b(limit|offset|fetch|for\s+(update|no|share|key)|union|except|intersect)\b",
                        re.I)
# Literals and comments, in which words and parentheses mean nothing.
QUOTED = re.compile(r"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.S)
KEY_WORDS = re.compile(r"\s+(asc|desc|nulls\s+(first|last)|using\s+\S+|collate\s+\S+)\b.*$", re.I)
CALL = re.compile(r"\b(\w+)\s*\(")
CURSOR_USE = re.compile(r"^\s*(?:fetch|move)\b.*?(\w+)\s*;?\s*$", re.I | re.S)
PREPARED_USE = re.compile(r"^\s*execute\s+(\w+)", re.I)
LIST_STARTS = re.compile(r"(select|returning)\s+(?:all\b|distinct\s+on\s*\(|distinct\b(?!\s+on\b))?",
                         re.I)
LIST_ENDS = re.compile(r"(?:from|into|where|group|having|window|order|limit|offset|fetch|for|union"
                       r"|intersect|except)\b|;", re.I)
EVERY_COLUMN = re.compile(r"(?:^|\.)\*$")


def without_quotes(sql):
    """The statement without literals and comments."""
    return QUOTED.sub(" ", sql)


def outermost(sql):
    """The statement without literals, comments and what is in parentheses."""
    text = without_quotes(sql)
    before = None
    while before != text:
        before = text
        text = re.sub(r"\([^()]*\)", " ", text)
    return text


def order_of(sql):
    """The items of the statement's own ORDER BY; none where it has none."""
    parts = ORDER_BY.split(outermost(sql))
    if len(parts) == 1:
        return []
    return [KEY_WORDS.sub("", item).strip().rstrip(";").strip()
            for item in ORDER_ENDS.split(parts[-1])[0].split(",")]


def uses_cursor(sql):
    return CURSOR_USE.match(without_quotes(sql))


def query_of(sql, script):
    """What a FETCH or an EXECUTE runs, as the script before it says; else the statement."""
    text = without_quotes(sql)
    for use, made in ((CURSOR_USE, r"\bdeclare\s+%s\b[^;]*?\bfor\b([^;]*)"),
                      (PREPARED_USE, r"\bprepare\s+%s\b[^;]*?\bas\b([^;]*)")):
        name = use.match(text)
        found = name and re.findall(made % re.escape(name.group(1)), script, re.I)
        if found:
            return found[-1]
    return sql


def closing(text, start):
    """Where the parenthesis closes that opens before `start`; the text's end if it never does."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def calls_in(sql):
    return {name.lower() for name in CALL.findall(without_quotes(sql))}


def arguments_of(names, sql):
    """What is in the parentheses of each call of one of those functions."""
    text = without_quotes(sql)
    return [text[call.end():closing(text, call.end())] for call in CALL.finditer(text)
            if call.group(1).lower() in names]


def targets_of(sql):
    """The items of the statement's target list, without literals and comments; none if it has none,
    or one within parentheses."""
    text = without_quotes(sql)
    place, items, start = 0, [], None
    while place < len(text):
        starts = start is None and re.match(r"\b", text[place:]) and LIST_STARTS.match(text, place)
        if starts:
            place = starts.end()
            if starts.group().endswith("("):
                place = closing(text, place) + 1
            start = place
            continue
        if start is not None and (place == 0 or not (text[place - 1].isalnum()
                                                     or text[place - 1] in "_.")):
            if LIST_ENDS.match(text, place):
                break
        if text[place] in "([":
            place = closing(text, place + 1) if text[place] == "(" else place
        elif text[place] == "," and start is not None:
            items.append(text[start:place])
            start = place + 1
        place += 1
    if start is not None:
        items.append(text[start:place])
    return [item.strip() for item in items]


def places_of(sql, names, matches):
    """The numbers of the columns, whose names are `names`, of those items of the target list that
    `matches` is true of."""
    items = targets_of(sql)
    stars = [place for place, item in enumerate(items) if EVERY_COLUMN.search(item)]
    more = len(names) - len(items)
    if len(stars) > 1 or (more != 0 and not stars) or more < -1:
        return set()
    return {place + (more if stars and place > stars[0] else 0)
            for place, item in enumerate(items) if place not in stars and matches(item)}
