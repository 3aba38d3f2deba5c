"""What may stand in a template of a filter: the part of MiniJinja in which nothing grows and nothing is called.

The idea: a template is text with holes, so a small language is enough: variables and what they hold, comparisons,
tests, a few filters, conditions and loops. Whatever else the engine knows is refused before it sees the template:
calls, macros, assignments, blocks that capture text, joining and multiplying of texts, lists of variables. So no
expression makes a value larger than what went in, nothing is carried from one turn of a loop to the next, and
everything that is printed is printed by one kind of tag, which templates.py watches.

Rejected: counting the engine's steps alone (one step can multiply a text by a billion), and a deny list (the engine
learns new words with every release).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from convmem.errors import TemplateRefused
from convmem.limits import TEMPLATE_BYTES_MAX, TEMPLATE_EXPRESSION_CODE_POINTS_MAX

FILTERS = frozenset({"abs", "default", "first", "float", "int", "last", "length", "lower", "round", "trim", "upper"})
TESTS = frozenset(
    {"boolean", "defined", "false", "float", "integer", "none", "number", "sequence", "string", "true", "undefined"}
)
# Values go out as JSON anyway; templates say it all the same, so it is known, as the last word of an expression.
AS_JSON = "tojson"
WITH_EXPRESSION, ALONE = frozenset({"if", "elif", "for"}), frozenset({"else", "endif", "endfor"})
_WORDS = frozenset({"and", "or", "not", "in", "is", "if", "else"})
_CONSTANTS = frozenset({"true", "false", "none", "True", "False", "None"})
# Every alternative begins with another character, and none can end in two places: linear.
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[^\W\d]\w*)
      | (?P<mark>==|!=|<=|>=|[<>.,()\[\]|-])
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENINGS = {"{{": "}}", "{%": "%}", "{#": "#}"}


class Token(NamedTuple):
    """A word of an expression; `kind` is the name of its group."""

    kind: str
    text: str
    start: int

    @property
    def is_variable(self) -> bool:
        """True for a name that is no word of the language."""
        return self.kind == "name" and self.text not in _WORDS | _CONSTANTS


class Tag(NamedTuple):
    """What stands between two braces."""

    opening: str
    tokens: list[Token]
    start: int
    end: int


def accepted(source: str) -> str:
    """The template as the engine may have it; TemplateRefused with the line of what is not allowed."""
    if len(source.encode()) > TEMPLATE_BYTES_MAX:
        raise TemplateRefused(f"a template may have {TEMPLATE_BYTES_MAX} bytes of UTF-8 at most", line=1)
    pieces, at = [], 0
    for tag in _tags(source):
        _check_tag(source, tag)
        pieces.append(source[at : tag.start])
        piece = source[tag.start : tag.end]
        if tag.opening == "{{" and [token.text for token in tag.tokens[-2:]] == ["|", AS_JSON]:
            pipe, word = tag.tokens[-2].start, tag.tokens[-1].start + len(AS_JSON)
            piece = source[tag.start : pipe] + source[word : tag.end]
        pieces.append(piece)
        at = tag.end
    return "".join([*pieces, source[at:]])


def refused(source: str, at: int, sentence: str) -> TemplateRefused:
    """The refusal of what stands at a place of the template."""
    line = source.count("\n", 0, at) + 1
    return TemplateRefused(f"{sentence} (line {line} of the template)", line=line)


def _tags(source: str) -> Iterator[Tag]:
    at = source.find("{")
    while at >= 0:
        opening = source[at : at + 2]
        closing = _OPENINGS.get(opening)
        end = at + 1
        if closing == "#}":
            end = source.find(closing, at + 2) + 2
            if end < 2:
                raise refused(source, at, "a comment does not end")
        elif closing:
            tokens, end = _tokens(source, at + 2, closing)
            yield Tag(opening, tokens, at, end)
        at = source.find("{", end)


def _tokens(source: str, at: int, closing: str) -> tuple[list[Token], int]:
    """The words of a tag, and where it ends. A minus or plus at either end says what becomes of the space beside it."""
    begun = at
    tokens: list[Token] = []
    if source[at : at + 1] in ("-", "+"):
        at += 1
    while not source.startswith((closing, f"-{closing}", f"+{closing}"), at):
        found = _TOKEN.match(source, at)
        if found is None or found.end() - begun > TEMPLATE_EXPRESSION_CODE_POINTS_MAX:
            what = "does not end or is too long" if found or at >= len(source) else "holds what is not allowed"
            raise refused(source, begun, f"an expression {what}")
        if found.lastgroup and found.lastgroup != "space":
            tokens.append(Token(found.lastgroup, found.group(), at))
        at = found.end()
    return tokens, at + len(closing) + (not source.startswith(closing, at))


def _check_tag(source: str, tag: Tag) -> None:
    tokens = tag.tokens
    if tag.opening == "{%":
        word = tokens[0].text if tokens else ""
        if word in ALONE and len(tokens) == 1:
            return
        if word not in WITH_EXPRESSION:
            raise refused(source, tag.start, "only if, elif, else, endif, for and endfor are known here")
        tokens = tokens[1:]
        if word == "for":
            is_plain = len(tokens) > 2 and tokens[0].is_variable and tokens[1].text == "in"
            if not is_plain:
                raise refused(source, tag.start, "a loop reads: for NAME in EXPRESSION")
            tokens = tokens[2:]
    elif [token.text for token in tokens[-2:]] == ["|", AS_JSON]:
        tokens = tokens[:-2]
    _check_expression(source, tag.start, tokens)


def _check_expression(source: str, start: int, tokens: list[Token]) -> None:
    if not tokens:
        raise refused(source, start, "an expression is empty")
    nothing = Token("mark", "", start)
    in_brackets = False
    choices = 0
    for before, last, token in zip([nothing, nothing, *tokens], [nothing, *tokens], tokens, strict=False):
        sentence = None
        if last.text == "|" and token.text not in FILTERS:
            sentence = f"the filters are {', '.join(sorted(FILTERS))}, and {AS_JSON} at the end"
        elif _follows_is(before, last) and token.text not in TESTS | {"not"}:
            sentence = f"the tests are {', '.join(sorted(TESTS))}"
        elif last.text == "." and (token.kind not in ("name", "number") or token.text.startswith("_")):
            sentence = "behind a dot stands a name that does not begin with _"
        elif token.text == "(" and _could_be_called(last) and not (last.kind == "name" and before.text == "|"):
            sentence = "nothing can be called"
        elif in_brackets and token.text != "]" and not _is_literal(token):
            sentence = "in brackets stand texts, numbers and constants only"
        if sentence:
            raise refused(source, token.start, sentence)
        in_brackets = token.text == "[" or (in_brackets and token.text != "]")
        choices += (token.kind == "name") * ((token.text == "if") - (token.text == "else"))
    if choices:
        raise refused(source, start, "every if in an expression has an else")


def _follows_is(before: Token, last: Token) -> bool:
    return last.text == "is" or (before.text == "is" and last.text == "not")


def _could_be_called(token: Token) -> bool:
    return token.is_variable or token.text in _CONSTANTS or token.kind == "text" or token.text in (")", "]")


def _is_literal(token: Token) -> bool:
    return token.kind in ("text", "number") or token.text in _CONSTANTS or token.text in (",", "-")
