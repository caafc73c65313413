"""C++ as tokens, as far as planting faults needs it: what is code and what is not, which brackets
belong together, and where an operand begins and ends. It relies on the tree's formatting:
a comparison has spaces on both sides, a template's angle bracket has none."""

import bisect
import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>(?m:^)[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<string>R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\d(?:[\w.]|'(?=\w))*)
  | (?P<operator><<=|>>=|<=>|->|::|\+\+|--|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|\|=|&=|\^=|<<|>>
      |[-+*/%<>=!&|^~?:.,;(){}\[\]])
""", re.X | re.S)

OPENING = {"(": ")", "[": "]", "{": "}"}
ASSIGNMENTS = {"=", "+=", "-=", "|=", "&=", "^=", "*=", "/=", "%=", "<<=", ">>="}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
# What an operand of a comparison, and of a conjunction, cannot contain at its own level.
OPERAND_ENDS = ASSIGNMENTS | {"||", "?", ":", ",", ";", "{", "}", "return", "co_return", "case"}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    begin: int
    end: int


class Source:
    """The tokens of one file without comments and directives, and what brackets they stand in."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(m.lastgroup, m.group(), m.start(), m.end())
                       for m in TOKEN.finditer(text) if m.lastgroup not in ("comment", "directive")]
        self.partner = {}
        self.owner = []  # of each token: the bracket around it, or None
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        open_ones = []
        for i, token in enumerate(self.tokens):
            if open_ones and token.text == OPENING[self.tokens[open_ones[-1]].text]:
                self.partner[open_ones[-1]] = i
                self.partner[i] = open_ones.pop()
            self.owner.append(open_ones[-1] if open_ones else None)
            if token.text in OPENING:
                open_ones.append(i)

    def line_of(self, offset):
        return bisect.bisect_left(self._newlines, offset) + 1

    def spaced(self, i):
        """Is the operator a binary one, by the spaces around it?"""
        token = self.tokens[i]
        before, after = self.text[token.begin - 1], self.text[token.end:token.end + 1]
        return before.isspace() and after.isspace()

    def operand_begin(self, i, ends):
        """The first token of the operand in front of the operator `i`."""
        i -= 1
        while i >= 0:
            text = self.tokens[i].text
            if text in ")]}" and i in self.partner:
                if text == "}" and not self._is_expression(i):
                    break
                i = self.partner[i]
            elif text in OPENING or self._ends(i, ends):
                break
            i -= 1
        return i + 1

    def operand_end(self, i, ends):
        """The last token of the operand behind the operator `i`."""
        i += 1
        while i < len(self.tokens):
            text = self.tokens[i].text
            if text in OPENING and i in self.partner:
                if text == "{" and not self._is_expression(self.partner[i]):
                    break
                i = self.partner[i]
            elif text in ")]}" or self._ends(i, ends):
                break
            i += 1
        return i - 1

    def _is_expression(self, closing):
        """Braces of an initializer or of a lambda's body in an expression."""
        opening = self.partner[closing]
        before = self.tokens[opening - 1]
        return before.kind == "name" and before.text[0].isupper() or before.text == "]"

    def _ends(self, i, ends):
        text = self.tokens[i].text
        if text not in ends:
            return False
        return text not in ("<", ">", "&&", "|", "&") or self.spaced(i)

    def span(self, first, last):
        return self.tokens[first].begin, self.tokens[last].end

    def between(self, first, last):
        begin, end = self.span(first, last)
        return self.text[begin:end]
