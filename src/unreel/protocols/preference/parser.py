"""From an answer's text to a `PreferenceVerdict`."""

import re
from collections.abc import Iterator
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import Position, PreferenceVerdict, Unparsed, UnparsedReason
from unreel.protocols.claims import clauses, read_claim
from unreel.protocols.preference.prompts import TAGGED_PROMPTS
from unreel.protocols.protocol import Reading
from unreel.protocols.text import (
    SHORT,
    after_thinking,
    first_read,
    is_no_answer,
    json_object,
    tagged,
    unparsed,
    unwrapped,
)

_FIRST: Final = "first|former|premier|première|primer[oa]?|erste[rs]?|primo|prima|第一"
_SECOND: Final = "second[aeo]?|latter|deuxième|segund[oa]|zweite[rs]?|第二"
_CLIP: Final = "clip|vid[eé]o|vídeo"
_POSITIONS: Final = {
    "1": Position.FIRST,
    "first": Position.FIRST,
    "2": Position.SECOND,
    "second": Position.SECOND,
}
_PLAIN: Final = re.compile(r"[\"']?(?P<said>[12])[\"']?\.?")
# Such as (1), Answer: 1, Video 1, the first video, or: The first video is real.
_LOOSE: Final = re.compile(
    r"[\"'*(\[\s]{0,5}(?:answer\s{0,3}(?::|=|is)[\"'*\s]{0,5})?"
    r"(?:(?:the\s{1,3})?(?:video\s{0,3})?(?P<said>1|2|first|second)(?:\s{1,3}(?:video|clip|one))?)"
    r"(?:\s{1,3}(?:is|looks|appears|seems)(?:\s{1,3}(?:the|to\s{1,3}be))?\s{1,3}real(?:\s{1,3}(?:video|clip|one))?)?"
    r"[\"'*)\].!\s]{0,5}",
    re.IGNORECASE | re.ASCII,
)
# "1. Its motion ..." and "1: ..." answer first and explain then; "2 errors" does not.
_LEADING: Final = re.compile(
    r"[\"'*(\[]{0,5}(?P<said>[12])[\"'*)\]]{0,5}(?:[.,:;]\s|\s{0,3}\n|\s[-\u2013\u2014]\s)"
)
# "clip one", "video 2", "the latter", "le premier clip"; a bare digit or "one" names none.
_NAMED: Final = re.compile(
    rf"(?<!\w)(?:(?:{_CLIP})\s{{0,3}}#?(?:(?P<first>1|one|{_FIRST})|(?P<second>2|two|{_SECOND}))(?!\w)"
    rf"|(?:(?P<first_word>{_FIRST})|(?P<second_word>{_SECOND}))(?![a-z])(?:\s(?:{_CLIP}|one)\b|个视频)?)",
    re.IGNORECASE,
)
_CLOSING: Final = re.compile(
    r"\b(?:so|therefore|hence|thus|answer|choose|pick)\b[^.\n\w]{0,5}(?:is\s|it\sis\s)?[\"'*]{0,3}(?P<said>[12])[\"'*.!\s]{0,5}$",
    re.IGNORECASE,
)
_OTHER: Final = {Position.FIRST: Position.SECOND, Position.SECOND: Position.FIRST}
_READ: Final = 10_000
"""A longer text is read up to here: it compares no more."""
_EITHER: Final = re.compile(r"(?<![\w.])[12](?![\w.]?[0-9])(?!\w)")


def parse(text: str, reading: Reading) -> PreferenceVerdict:
    """Which clip the answer calls real: 1 is the first, 2 the second, as they were shown.

    `strict` wants the digit and nothing else beside a thought, in the last `<answer>` where the prompt
    asks for one; 0, which the printed texts ask for too, names neither. `lenient` also takes the last
    `<answer>`, "Video 1", "the first video is real", a digit that opens an explanation in which the
    other digit does not stand, and what prose claims of the two. A refusal or an error message is no
    answer.
    """
    return PreferenceVerdict(real=first_read(_positions(text, reading)))


def _positions(text: str, reading: Reading) -> Iterator[Position | Unparsed]:
    body = after_thinking(text).strip()
    asked = tagged(body, "answer", "strict") if reading.prompt in TAGGED_PROMPTS else [body]
    yield _position(asked[-1] if asked else "", _PLAIN)
    if reading.mode == "lenient" and not is_no_answer(body):
        plain = unwrapped(body).strip()
        if pieces := tagged(plain, "answer", "lenient"):
            yield _position(pieces[-1], _LOOSE)
            return
        yield _position(plain, _LOOSE)
        if "answer" in (given := json_object(body)):
            yield _position(str(given["answer"]), _LOOSE)
        yield _leading(plain)
        yield _in_prose(plain)


def _position(piece: str, form: re.Pattern[str]) -> Position | Unparsed:
    found = form.fullmatch(piece) if len(piece) <= SHORT else None
    if found:
        return _POSITIONS[found["said"].lower()]
    return unparsed(UnparsedReason.MALFORMED if piece else UnparsedReason.MISSING, piece)


def _leading(body: str) -> Position | Unparsed:
    found = _LEADING.match(body)
    if found is None:
        return unparsed(UnparsedReason.MISSING, body)
    if {digit[0] for digit in _EITHER.finditer(body)} != {found["said"]}:
        return unparsed(UnparsedReason.AMBIGUOUS, body)
    return _POSITIONS[found["said"]]


def _in_prose(body: str) -> Position | Unparsed:
    """The clip that every claim about one of the two leaves as the real one, or the closing words."""
    said = set(_claims(body))
    if closing := _CLOSING.search(body[-SHORT:]):
        said.add(_POSITIONS[closing["said"]])
    if len(said) == 1:
        return said.pop()
    return unparsed(UnparsedReason.AMBIGUOUS if said else UnparsedReason.MISSING, body)


def _claims(body: str) -> Iterator[Position]:
    for clause in clauses(body[:_READ]):
        named = list(_NAMED.finditer(clause.text))
        ends = [name.start() for name in named[1:]] + [len(clause.text)]
        for name, end in zip(named, ends, strict=False):
            claim = read_claim("this " + clause.text[name.end() : end])
            if clause.asks or isinstance(claim, Unparsed):
                continue
            is_first = name["first"] or name["first_word"]
            position = Position.FIRST if is_first else Position.SECOND
            yield position if claim is Label.REAL else _OTHER[position]
