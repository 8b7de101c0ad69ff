"""From an answer's text to a `RealismVerdict`."""

import re
from collections.abc import Iterator
from typing import Final, Literal

from unreel.core.verdict import RealismVerdict, Unparsed, UnparsedReason
from unreel.protocols.protocol import Mode, Reading
from unreel.protocols.realism.prompts import TERMS, VERBAL_PROMPTS
from unreel.protocols.text import SHORT, after_thinking, first_read, tagged, unparsed

Reason = Literal["problem", "adherence"]

_INTEGERS: Final = {str(score): score for score in range(1, 6)}
_TERMS: Final = {term: score for score, term in enumerate(TERMS, start=1)}
_TERM: Final = "|".join(TERMS)
# "3", "3.", "3/5", "3 (Normal)", "Normal", "Score: 3", with quotes or stars around.
_LOOSE: Final = re.compile(
    r"[\"'*\s]{0,5}(?:(?:final\s{1,3})?(?:score|rating|answer)\s{0,3}(?::|=|is)[\"'*\s]{0,5})?"
    r"(?:(?P<score>[1-5])(?:\s{0,3}/\s{0,3}5)?[\"'*\s]{0,5})?"
    rf"(?:[(:-]?\s{{0,3}}(?P<term>{_TERM})\)?)?[\"'*.!\s]{{0,5}}",
    re.IGNORECASE | re.ASCII,
)
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,12}")

_HEADS: Final = {
    "strict": re.compile(r"(?P<problem>Problem Description:)|(?P<adherence>Standard Adherence:)"),
    "lenient": re.compile(
        r"(?:#{1,4}\s)?[*_]{0,3}(?:(?P<problem>problem\s{1,3}description)|(?P<adherence>standard\s{1,3}adherence))"
        r"[*_\s]{0,3}:[*_]{0,3}",
        re.IGNORECASE | re.ASCII,
    ),
}
_REASONS_END: Final = re.compile(r"</think>|<answer>", re.IGNORECASE | re.ASCII)


def parse(text: str, reading: Reading) -> RealismVerdict:
    """The score of the last `<answer>` that holds one, and the two reasons where they are headed.

    `strict` takes an integer from 1 to 5, or one of the five terms when a verbal variant was asked.
    `lenient` takes all of that, the two forms mixed, an unclosed tag, and an answer that is nothing
    but the score. A number outside 1 to 5 is out of range; a fraction is malformed, never rounded.
    """
    return RealismVerdict(
        score=first_read(_scores(text, reading)),
        problem=first_read(_reasons(text, "problem", reading.mode)),
        adherence=first_read(_reasons(text, "adherence", reading.mode)),
    )


def _scores(text: str, reading: Reading) -> Iterator[int | Unparsed]:
    asked = _TERMS if reading.prompt in VERBAL_PROMPTS else _INTEGERS
    pieces = tagged(text, "answer", "strict")
    yield next((asked[piece] for piece in reversed(pieces) if piece in asked), _refuse(pieces))
    if reading.mode == "lenient":
        pieces = tagged(text, "answer", "lenient")
        yield first_read(map(_loose_score, reversed(pieces)))
        if not pieces and not isinstance(
            bare := _loose_score(after_thinking(text).strip()), Unparsed
        ):
            yield bare


def _refuse(pieces: list[str]) -> Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    out_of_range = _NUMBER.fullmatch(pieces[-1]) and pieces[-1] not in _INTEGERS
    reason = UnparsedReason.OUT_OF_RANGE if out_of_range else UnparsedReason.MALFORMED
    return unparsed(reason, pieces[-1])


def _loose_score(piece: str) -> int | Unparsed:
    found = _LOOSE.fullmatch(piece) if len(piece) <= SHORT else None
    said = set[int]()
    if found and found["score"]:
        said.add(int(found["score"]))
    if found and found["term"]:
        said.add(_TERMS[found["term"].capitalize()])
    if len(said) > 1:
        return unparsed(UnparsedReason.AMBIGUOUS, piece)
    return said.pop() if said else _refuse([piece])


def _reasons(text: str, reason: Reason, mode: Mode) -> Iterator[str | Unparsed]:
    yield _reason(text, reason, "strict")
    if mode == "lenient":
        yield _reason(text, reason, "lenient")


def _reason(text: str, reason: Reason, mode: Mode) -> str | Unparsed:
    """What follows the last heading of `reason`, up to the next heading or the end of the thought."""
    start, end = None, len(text)
    for head in _HEADS[mode].finditer(text):
        if head[reason]:
            start, end = head.end(), len(text)
        elif start is not None and end == len(text):
            end = head.start()
    if start is None:
        return Unparsed(UnparsedReason.MISSING)
    thought_ends = _REASONS_END.search(text, start, end)
    said = text[start : thought_ends.start() if thought_ends else end].strip()
    return said or Unparsed(UnparsedReason.MISSING)
