"""Pieces of an answer's text, found in one pass: no text takes more than linear time."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, TypeVar

from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.protocol import Mode

R = TypeVar("R")

READABLE: Final = 120
"""Most characters of a text that `Unparsed.found` repeats."""
SHORT: Final = 200
"""A piece that should hold one number, word or box is not read when it is longer than this."""

_UNDERSTOOD: Final = (
    UnparsedReason.MISSING,
    UnparsedReason.MALFORMED,
    UnparsedReason.OUT_OF_RANGE,
    UnparsedReason.AMBIGUOUS,
)
_THOUGHT: Final = re.compile(
    r"(?P<closes></think(?:ing)?>|\u25c1/think\u25b7|\[/think\]|<\|end_of_thought\|>)"
    r"|<think(?:ing)?>|\u25c1think\u25b7|\[think\]|<\|begin_of_thought\|>",
    re.IGNORECASE | re.ASCII,
)
# The marks of GLM, of Qwen and DeepSeek, of InternVL, LaTeX's box, and a code fence.
_WRAPPING: Final = re.compile(
    r"<\|(?:begin_of_box|end_of_box|box_start|box_end|det|/det|ref|/ref)\|>|</?(?:box|ref|bbox)>"
    r"|\\boxed\{(?P<boxed>[^{}]{0,200})\}|```\w{0,10}",
    re.IGNORECASE | re.ASCII,
)
# Where such a text names a label at all, it repeats the question instead of answering it. Phrases
# that also open honest answers ("I cannot see any fault", "Unfortunately") are left out on purpose.
_NO_ANSWER: Final = re.compile(
    r"""[\W_]{0,10}(?:
      (?P<refusal>
        (?:i['\u2019]m|i\ am|we['\u2019]re|we\ are)\ (?:very\ |so\ |really\ )?sorry\b
      | lo\ siento\b | es\ tut\ mir\ leid | (?:je\ suis\ )?désolée?\b | mi\ dispiace\b | desculpe\b | sinto\ muito\b
      | извините\b | к\ сожалению,?\ я\ не\ могу | 抱歉 | 对不起 | 對不起 | 申し訳 | すみません | 죄송 | عذر[اًا] | آسف
      | sorry\b | as\ an?\ (?:ai|large)\b | (?:i|we)\ apologi[sz]e\b
      | (?:(?:i|we)\ (?:can['\u2019]?t|cannot|can\ not|could\ not|couldn['\u2019]t|am\ unable\ to|am\ not\ able\ to)
        | i['\u2019]m\ (?:unable|not\ able)\ to | unable\ to)\ (?:\w{1,20}\ )?
        (?:help|assist|assess|evaluate|analy[sz]e|answer|comply|provide|view|watch|rate|score|access|open
        |play|process|fulfil|(?P<undecided>determine|decide|tell|say|judge|verify|be\ (?:sure|certain)))
      | (?:i|we)\ (?:do\ not|don['\u2019]t)\ (?:\w{1,20}\ )?have\ (?:access|the\ ability)
      )
      | no\ (?:video|frames?)\ (?:was|were|is|are|has|have|could|provided|found|attached)
      | [\w.]{0,40}(?:error|exception)(?:\ (?:code|occurred|while|when|from)\b|["']?\s{0,3}[:\[({\d]|$)
      | traceback\b | bad\ request\b | rate\ limit | <!doctype | <html | \d{1,4}\ validation\ error
      | (?:http\S{0,8}\ )?[45]\d\d\ (?:bad|unauthori|forbidden|not\ found|too\ many|internal|service
        |gateway|client|server|error)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def build_unparsed(reason: UnparsedReason, found: str = "") -> Unparsed:
    """Return an `Unparsed` with the text cut to a readable length."""
    seen = found.strip()
    return Unparsed(reason, seen if len(seen) <= READABLE else seen[: READABLE - 1] + "…")


def strip_thinking(text: str) -> str:
    """Return the answer after the thoughts, for the thinking marks of every supported model family.

    A second opening mark closes the first, as in the example in Video Reality Test. A thought
    without an end contains no answer, unless the text ends with an `<answer>`.
    """
    marks = list(_THOUGHT.finditer(text))
    closed = [mark for mark in marks if mark["closes"]]
    if closed:
        body = text[closed[-1].end() :]
        again = _THOUGHT.search(body)
        return body[: again.start()] if again else body
    if len(marks) > 1:
        return text[marks[-1].end() :]
    if not marks:
        return text
    last = text.rfind("<answer>")
    return (
        text[last:]
        if last >= 0 and text.rstrip().endswith("</answer>")
        else text[: marks[0].start()]
    )


def strip_markup(text: str) -> str:
    """Return `text` in plain characters and digits, without markup that models put around answers."""
    plain = unicodedata.normalize("NFKC", text)
    return _WRAPPING.sub(
        r"\g<boxed>", plain if plain.isascii() else plain.translate(_build_digit_table())
    )


@cache
def _build_digit_table() -> dict[int, str | None]:
    """Return a character table that maps digits of every script to ASCII digits.

    The table removes Arabic vowel signs, because they are optional in writing.
    """
    codes = (code for code in range(0x660, 0x1FC00) if chr(code).isdecimal())
    signs = dict.fromkeys((0x640, 0x200B, 0x2060, *range(0x64B, 0x653)), None)
    return {code: str(unicodedata.decimal(chr(code))) for code in codes} | signs


def is_no_answer(text: str) -> bool:
    """Return whether `text` begins as a refusal or as a server's error message."""
    return _NO_ANSWER.match(text.lstrip()[:SHORT]) is not None


def is_refusal(text: str) -> bool:
    """Return True if the answer after the reasoning begins as a refusal; an undecided answer is none."""
    match = _NO_ANSWER.match(strip_thinking(text).lstrip()[:SHORT])
    return match is not None and match["refusal"] is not None and match["undecided"] is None


def find_tagged(text: str, name: str, mode: Mode) -> list[str]:
    """Return the contents between `<name>` and `</name>`, stripped, in order; blank ones are omitted.

    Of nested tags the innermost piece counts. `lenient` takes other letter cases, spaces inside the
    tag, and a tag that is not closed: its piece ends at the next tag or at the end of the text.
    """
    pieces = (piece.strip() for piece in _iter_tagged_pieces(text, name, mode))
    return [piece for piece in pieces if piece]


def _iter_tagged_pieces(text: str, name: str, mode: Mode) -> Iterator[str]:
    opened: int | None = None
    for tag in _compile_tag_pattern(name, mode).finditer(text):
        if tag[1]:
            if opened is not None:
                yield text[opened : tag.start()]
            opened = None
            continue
        if opened is not None and mode == "lenient":
            yield text[opened : tag.start()]
        opened = tag.end()
    if opened is not None and mode == "lenient":
        end = text.find("<", opened)
        yield text[opened : len(text) if end < 0 else end]


@cache
def _compile_tag_pattern(name: str, mode: Mode) -> re.Pattern[str]:
    if mode == "strict":
        return re.compile(rf"<(/?){name}>")
    return re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}{name}\s{{0,3}}>", re.IGNORECASE | re.ASCII)


def parse_first(attempts: Iterable[R | Unparsed]) -> R | Unparsed:
    """Return the first successful result; if all fail, the reason of the attempt that parsed most."""
    best = Unparsed(UnparsedReason.MISSING)
    for result in attempts:
        if not isinstance(result, Unparsed):
            return result
        if _UNDERSTOOD.index(result.reason) > _UNDERSTOOD.index(best.reason):
            best = result
    return best
