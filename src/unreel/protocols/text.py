"""Pieces of an answer's text, found in one pass: no text takes more than linear time."""

import re
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
_THINKING_ENDS: Final = re.compile(r"</think>", re.IGNORECASE | re.ASCII)
# Where such a text names a label at all, it repeats the question instead of answering it. Phrases
# that also open honest answers ("I cannot see any fault", "Unfortunately") are left out on purpose.
_NO_ANSWER: Final = re.compile(
    r"""[\W_]{0,10}(?:
        (?:i['\u2019]m|i\ am|we['\u2019]re|we\ are)\ (?:very\ |so\ |really\ )?sorry\b
      | sorry\b | as\ an?\ (?:ai|large)\b | (?:i|we)\ apologi[sz]e\b
      | (?:(?:i|we)\ (?:can['\u2019]?t|cannot|can\ not|could\ not|couldn['\u2019]t|am\ unable\ to|am\ not\ able\ to)
        | i['\u2019]m\ (?:unable|not\ able)\ to | unable\ to)\ (?:\w{1,20}\ )?
        (?:help|assist|determine|decide|tell|say|judge|verify|assess|evaluate|analy[sz]e|answer|comply
        |provide|view|watch|access|open|play|process|fulfil|be\ (?:sure|certain))
      | (?:i|we)\ (?:do\ not|don['\u2019]t)\ (?:\w{1,20}\ )?have\ (?:access|the\ ability)
      | no\ (?:video|frames?)\ (?:was|were|is|are|has|have|could|provided|found|attached)
      | [\w.]{0,40}(?:error|exception)(?:\ (?:code|occurred|while|when|from)\b|["']?\s{0,3}[:\[({\d]|$)
      | traceback\b | bad\ request\b | rate\ limit | <!doctype | <html | \d{1,4}\ validation\ error
      | (?:http\S{0,8}\ )?[45]\d\d\ (?:bad|unauthori|forbidden|not\ found|too\ many|internal|service
        |gateway|client|server|error)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def unparsed(reason: UnparsedReason, found: str = "") -> Unparsed:
    """What could not be read, with the text cut to a readable length."""
    seen = found.strip()
    return Unparsed(reason, seen if len(seen) <= READABLE else seen[: READABLE - 1] + "…")


def after_thinking(text: str) -> str:
    """What follows the last closed thought; all of `text` when no thought is closed."""
    end = 0
    for found in _THINKING_ENDS.finditer(text):
        end = found.end()
    return text[end:]


def is_no_answer(text: str) -> bool:
    """True for a text that begins as a refusal or as a server's error message."""
    return _NO_ANSWER.match(text.lstrip()[:SHORT]) is not None


def tagged(text: str, name: str, mode: Mode) -> list[str]:
    """What stands between `<name>` and `</name>`, stripped, in order; blank pieces are left out.

    Of nested tags the innermost piece counts. `lenient` takes other letter cases, spaces inside the
    tag, and a tag that is not closed: its piece ends at the next tag or at the end of the text.
    """
    pieces = (piece.strip() for piece in _pieces(text, name, mode))
    return [piece for piece in pieces if piece]


def _pieces(text: str, name: str, mode: Mode) -> Iterator[str]:
    opened: int | None = None
    for tag in _tag(name, mode).finditer(text):
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
def _tag(name: str, mode: Mode) -> re.Pattern[str]:
    if mode == "strict":
        return re.compile(rf"<(/?){name}>")
    return re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}{name}\s{{0,3}}>", re.IGNORECASE | re.ASCII)


def first_read(attempts: Iterable[R | Unparsed]) -> R | Unparsed:
    """The first attempt that reads something, else the reason of the one that understood most."""
    best = Unparsed(UnparsedReason.MISSING)
    for result in attempts:
        if not isinstance(result, Unparsed):
            return result
        if _UNDERSTOOD.index(result.reason) > _UNDERSTOOD.index(best.reason):
            best = result
    return best
