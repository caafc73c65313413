"""Plants small faults in C++ sources, each behind a switch, so that all of them are built at once
(mutant schemata). A candidate is a place and a fault of one of the kinds below; `choose` picks
some of them by their hashes, so that a fault is chosen or not whatever else changes; `plant`
writes them into the text, line by line where they were."""

import fnmatch
import hashlib
import re
from dataclasses import dataclass, field

from cpp_tokens import ASSIGNMENTS, COMPARISONS, OPENING, OPERAND_ENDS, Source

SWITCH = "::rdmacc::planted::fault"
OTHER_COMPARISON = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LITERALS_OF_ONE = {"1", "1u", "1ull", "uint64_t{1}"}
# How often a candidate of each kind is chosen, against those of the others.
WEIGHTS = {"never": 1.0, "always": 1.0, "dropped-check": 1.6, "comparison": 1.2, "one-off": 1.6,
           "dropped-bit": 1.6, "dropped-statement": 1.0, "swapped-statements": 1.2,
           "negated-value": 1.0, "extremum": 1.0, "ignored-error": 0.5}
# A file that moves to another room of its folder keeps its faults.
ROOM = re.compile(r"^(engine/(?:storage|txn)/)\w+/")
NO_STATEMENT = {"return", "break", "continue", "goto", "case", "default", "using", "typedef",
                "static", "const", "constexpr", "auto", "if", "for", "while", "do", "switch",
                "else", "public", "private", "template", "namespace", "struct", "class", "enum",
                "friend", "extern", "delete", "new", "explicit", "virtual", "inline", "operator",
                "static_assert", "CHECK", "DCHECK", "throw", "try", "catch", "union", "protected"}


@dataclass(frozen=True)
class Edit:
    begin: int
    end: int
    text: str  # with SWITCH(@) for the switch


@dataclass
class Candidate:
    path: str
    line: int
    kind: str
    original: str
    mutated: str
    edits: list = field(repr=False)
    last_line: int = 0
    ordinal: int = 0  # among those of this path, kind, original and mutated

    @property
    def key(self):
        if self.kind == "named":
            return f"named | {self.original}"  # in several places, it may be
        return f"{self.path} | {self.kind} | {self.original} -> {self.mutated}" + (
            f" | {self.ordinal}" if self.ordinal else "")

    @property
    def begin(self):
        return min(edit.begin for edit in self.edits)

    @property
    def end(self):
        return max(edit.end for edit in self.edits)

    def hash(self, seed):
        key = ROOM.sub(r"\1", self.key)
        digest = hashlib.sha256(f"{seed} {key}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64


def shorten(text):
    return re.sub(r"\s+", " ", text).strip()


class Finder:
    """All candidates of one file."""

    def __init__(self, path, text, skipped=None):
        self.path = path
        self.source = Source(text)
        self.skipped = skipped or (lambda line_text: False)
        self.lines = text.split("\n")
        self.found = []
        self.seen = {}

    def candidates(self):
        for i, token in enumerate(self.source.tokens):
            if token.text == "if":
                self.condition(i)
            elif token.text in ("&&", "||") and self.source.spaced(i):
                self.operands(i)
            elif token.text in COMPARISONS and self.source.spaced(i):
                self.comparison(i)
            elif token.text in ("+", "-") and self.source.spaced(i):
                self.one_off(i)
            elif token.text == "|" and self.source.spaced(i):
                self.bit(i)
            elif token.text in ("true", "false"):
                self.negated(i)
            elif token.text in ("max", "min"):
                self.extremum(i)
            elif token.text == "RDMACC_RETURN_IF_ERROR":
                self.error(i)
            self.statement(i)
        return self.found

    def add(self, kind, first, last, mutated, edits):
        begin, end = self.source.span(first, last)
        line = self.source.line_of(begin)
        last_line = self.source.line_of(end)
        lines = self.lines[line - 1:last_line]
        if any(self.skipped(each) for each in lines) or self.constant(first):
            return
        original = shorten(self.source.text[begin:end])
        mutated = shorten(mutated)
        name = (kind, original, mutated)
        ordinal = self.seen[name] = self.seen.get(name, -1) + 1
        self.found.append(Candidate(self.path, line, kind, original, mutated, edits, last_line,
                                    ordinal))

    def constant(self, i):
        """Inside of what the compiler evaluates: a constexpr value, a static_assert, a label."""
        tokens, owner = self.source.tokens, self.source.owner
        while i is not None:
            begin = i
            while begin > 0 and tokens[begin - 1].text not in (";", "{", "}") and (
                    owner[begin - 1] == owner[i]):
                begin -= 1
            head = [token.text for token in tokens[begin:i + 1]]
            if "static_assert" in head or "case" in head:
                return True
            if "constexpr" in head and ("=" in head or "if" in head):
                return True
            i = owner[i]
        return False

    # ---- The kinds

    def condition(self, i):
        if self.source.tokens[i + 1].text != "(":
            return  # if constexpr
        first, last = i + 2, self.source.partner[i + 1] - 1
        tokens = self.source.tokens
        level = [k for k in range(first, last + 1) if self.source.owner[k] == i + 1]
        if any(tokens[k].text in (";", "=") for k in level):
            return  # declares something
        begin, end = self.source.span(first, last)
        self.add("never", first, last, "false",
                 [Edit(begin, begin, f"!{SWITCH}(@) && ("), Edit(end, end, ")")])
        self.add("always", first, last, "true",
                 [Edit(begin, begin, f"{SWITCH}(@) || ("), Edit(end, end, ")")])

    def operands(self, i):
        """A check dropped: one operand of a conjunction or a disjunction."""
        operator = self.source.tokens[i].text
        ends = OPERAND_ENDS | {operator}
        sides = [(i + 1, self.source.operand_end(i, ends))]
        first = self.source.operand_begin(i, ends)
        if first == 0 or self.source.tokens[first - 1].text != operator:
            sides.insert(0, (first, i - 1))
        for first, last in sides:
            if last < first:
                continue
            begin, end = self.source.span(first, last)
            text = self.source.text[begin:end]
            head = f"({SWITCH}(@) || (" if operator == "&&" else f"(!{SWITCH}(@) && ("
            # With the operator, so that it is told from the same words elsewhere.
            shown = f"{operator} {text}" if first > i else f"{text} {operator}"
            before = len(self.found)
            self.add("dropped-check", first, last, "", [Edit(begin, begin, head),
                                                        Edit(end, end, "))")])
            if len(self.found) > before:
                self.rename(shorten(shown), "nothing")

    def rename(self, original, mutated):
        candidate = self.found[-1]
        candidate.original, candidate.mutated = original, mutated
        name = (candidate.kind, original, mutated)
        candidate.ordinal = self.seen[name] = self.seen.get(name, -1) + 1

    def comparison(self, i):
        ends = OPERAND_ENDS | COMPARISONS | {"&&"}
        first, last = self.source.operand_begin(i, ends), self.source.operand_end(i, ends)
        if first >= i or last <= i or self.source.tokens[first].text == "operator":
            return
        begin, end = self.source.span(first, last)
        token = self.source.tokens[i]
        text = self.source.text
        mutated = text[begin:token.begin] + OTHER_COMPARISON[token.text] + text[token.end:end]
        if "[&" in mutated or "[this" in mutated:
            return  # a lambda is not the same one twice
        flat = mutated.replace("\n", " ")
        self.add("comparison", first, last, mutated,
                 [Edit(begin, begin, f"({SWITCH}(@) ? ({flat}) : ("), Edit(end, end, "))")])

    def one_off(self, i):
        literal = self.source.tokens[i + 1]
        if literal.text not in LITERALS_OF_ONE:
            return
        after = self.source.tokens[i + 2].text
        if after in ("<<", "*", "/", "."):
            return
        first = i - 1
        while self.source.tokens[first].text in ")]" and first in self.source.partner:
            first = self.source.partner[first] - 1
        begin = self.source.tokens[first].begin
        if self.source.tokens[first].text in OPENING or begin > literal.begin:
            return
        nothing = literal.text.replace("1", "0")
        self.add("one-off", first, i + 1, self.source.text[begin:self.source.tokens[i - 1].end],
                 [Edit(literal.begin, literal.end, f"({SWITCH}(@) ? {nothing} : {literal.text})")])

    def bit(self, i):
        for k in (i - 1, i + 1):
            token = self.source.tokens[k]
            if not re.match(r"k[A-Z]\w*$", token.text):
                continue
            other = self.source.tokens[2 * i - k].text
            self.add("dropped-bit", i - 1, i + 1, other,
                     [Edit(token.begin, token.end,
                           f"({SWITCH}(@) ? decltype({token.text}){{}} : {token.text})")])

    def negated(self, i):
        token = self.source.tokens[i]
        if self.source.tokens[i - 1].text in ("<", "::"):
            return
        other = "false" if token.text == "true" else "true"
        first = i
        while first > 0 and self.source.owner[first - 1] == self.source.owner[i] and (
                self.source.tokens[first - 1].text not in OPERAND_ENDS - ASSIGNMENTS | OPENING.keys()):
            first -= 1
        if self.source.tokens[first - 1].text == "return":
            first -= 1
        if first < i and self.source.tokens[i - 1].text == "=" and (
                self.source.tokens[first].kind == "name" and
                self.source.tokens[first + 1].kind == "name"):
            return  # the first value of a variable or a member
        begin = self.source.tokens[first].begin
        self.add("negated-value", first, i, self.source.text[begin:token.begin] + other,
                 [Edit(token.begin, token.end, f"({SWITCH}(@) ? {other} : {token.text})")])

    def extremum(self, i):
        tokens = self.source.tokens
        if tokens[i - 1].text != "::" or tokens[i - 2].text != "std":
            return
        opening = i + 1
        if tokens[opening].text == "<":
            while tokens[opening].text != "(":
                opening += 1
        if opening not in self.source.partner:
            return
        last = self.source.partner[opening]
        begin, end = self.source.span(i - 2, last)
        other = "min" if tokens[i].text == "max" else "max"
        text = self.source.text
        mutated = text[begin:tokens[i].begin] + other + text[tokens[i].end:end]
        flat = mutated.replace("\n", " ")
        self.add("extremum", i - 2, last, mutated,
                 [Edit(begin, begin, f"({SWITCH}(@) ? ({flat}) : ("), Edit(end, end, "))")])

    def error(self, i):
        first, last = i + 2, self.source.partner[i + 1] - 1
        begin, end = self.source.span(first, last)
        flat = self.source.text[begin:end].replace("\n", " ")
        self.add("ignored-error", i, last + 1, f"static_cast<void>({flat})",
                 [Edit(begin, begin, f"{SWITCH}(@) ? (static_cast<void>({flat}), ::rdmacc::Status()) "
                                     ": ("), Edit(end, end, ")")])

    # ---- Statements

    def statement(self, i):
        """Dropped, and swapped with the next."""
        last = self.statement_end(i)
        if last is None:
            return
        begin, end = self.source.span(i, last)
        self.add("dropped-statement", i, last, "",
                 [Edit(begin, begin, f"{{ if (!{SWITCH}(@)) {{ "), Edit(end, end, " } }")])
        if self.found and self.found[-1].begin == begin:
            self.found[-1].mutated = "nothing"
        if self.source.tokens[i - 1].text not in (";", "{", "}"):
            return
        next_last = self.statement_end(last + 1)
        if next_last is None or self.source.tokens[i].text == "RDMACC_RETURN_IF_ERROR":
            return
        first_text = self.source.text[begin:end]
        next_begin, next_end = self.source.span(last + 1, next_last)
        if "(" not in first_text or "(" not in self.source.text[next_begin:next_end]:
            return  # two plain assignments: their order is no matter
        flat = first_text.replace("\n", " ")
        self.add("swapped-statements", i, next_last,
                 self.source.text[next_begin:next_end] + " " + first_text,
                 [Edit(begin, begin, f"if (!{SWITCH}(@)) {{ "), Edit(end, end, " }"),
                  Edit(next_end, next_end, f" if ({SWITCH}(@)) {{ {flat} }}")])

    def statement_end(self, i):
        """The `;` of the expression statement that begins at token `i`, if one does."""
        tokens, owner = self.source.tokens, self.source.owner
        if i == 0 or i >= len(tokens) or not self.begins_statement(i):
            return None
        if tokens[i].text in NO_STATEMENT or owner[i] is None:
            return None
        if tokens[owner[i]].text != "{" or self.is_class(owner[i]):
            return None
        k = i
        acts = False
        while k < len(tokens) and tokens[k].text != ";":
            text = tokens[k].text
            if text in ASSIGNMENTS or text in ("++", "--"):
                acts = True
                if text in ASSIGNMENTS:
                    break
            elif text == "(":
                acts = True
            if k > i and tokens[k].kind == "name" and tokens[k - 1].kind == "name":
                return None  # a declaration
            if text in ("*", "&", "<", ">", "&&") and k > i:
                return None
            if text == "{" or text in (")", "]", "}"):
                return None
            k = self.source.partner[k] + 1 if text in OPENING else k + 1
        while k < len(tokens) and tokens[k].text != ";":
            if tokens[k].text in ("default", "delete", "}"):
                return None
            k = self.source.partner[k] + 1 if tokens[k].text in OPENING else k + 1
        return k if acts and k < len(tokens) else None

    def is_class(self, opening):
        """Does the brace hold declarations?"""
        tokens = self.source.tokens
        i = opening - 1
        while i >= 0 and tokens[i].text not in (";", "{", "}", ")"):
            if tokens[i].text in ("class", "struct", "union", "enum", "namespace"):
                return True
            i -= 1
        return False

    def begins_statement(self, i):
        before = self.source.tokens[i - 1].text
        if before in (";", "{", "}", "else"):
            return self.source.tokens[i].kind == "name" or self.source.tokens[i].text in ("*", "++",
                                                                                          "--")
        if before != ")":
            return False
        opening = self.source.partner.get(i - 1)
        return opening is not None and opening > 0 and (
            self.source.tokens[opening - 1].text in ("if", "for", "while"))


def choose(candidates, seed, share):
    """Those whose hash is low enough for their kind, and of each file at least the lowest; of two
    that overlap the one with the lower hash."""
    chosen, first_of = [], {}
    ranked = sorted(candidates, key=lambda each: each.hash(seed) / WEIGHTS[each.kind])
    for each in ranked:
        wanted = each.hash(seed) < share * WEIGHTS[each.kind]
        if not wanted and each.path in first_of:
            continue
        if any(other.path == each.path and other.begin < each.end and each.begin < other.end
               for other in chosen):
            continue
        first_of.setdefault(each.path, each)
        chosen.append(each)
    return sorted(chosen, key=lambda each: (each.path, each.begin))


def plant(text, numbered):
    """`numbered`: (number, candidate) of this text. The lines stay where they are."""
    edits = [(edit, number) for number, candidate in numbered for edit in candidate.edits]
    for edit, number in sorted(edits, key=lambda each: (each[0].begin, each[0].end), reverse=True):
        assert "\n" not in edit.text
        inserted = edit.text.replace("@", str(number))
        lost = text[edit.begin:edit.end].count("\n")
        text = text[:edit.begin] + inserted + "\n" * lost + text[edit.end:]
    return text


def named_candidate(path, text, name, original, mutated):
    """A fault written by hand: `original` stands in the text exactly once, `mutated` has FAULT in
    it where the switch is asked."""
    if text.count(original) != 1:
        raise ValueError(f"{path}: \"{shorten(original)}\" stands there {text.count(original)} times")
    begin = text.index(original)
    line = text.count("\n", 0, begin) + 1
    edit = Edit(begin, begin + len(original),
                mutated.replace("\n", " ").replace("FAULT", f"{SWITCH}(@)"))
    last_line = line + original.count("\n")
    return Candidate(path, line, "named", name, shorten(mutated), [edit], last_line)


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)
