"""From an answer's text to a `RealityVerdict`."""

import re
from collections.abc import Iterator
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed, UnparsedReason
from unreel.protocols.protocol import Reading
from unreel.protocols.text import SHORT, after_thinking, first_read, tagged, unparsed

_DIGITS: Final = {"1": Label.REAL, "0": Label.GENERATED}
_WORDS: Final = {"real": Label.REAL, "fake": Label.GENERATED}
# "1", "1.", "(1)", "Answer: 1", "1 (real)", "fake", with quotes or stars around.
_LOOSE: Final = re.compile(
    r"[\"'*(\[\s]{0,5}(?:answer\s{0,3}(?::|=|is)[\"'*\s]{0,5})?(?P<digit>[01])?"
    r"[\"'*\s]{0,5}[(:=-]?\s{0,3}(?P<word>real|fake)?[\"'*)\].!\s]{0,5}",
    re.IGNORECASE | re.ASCII,
)
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,12}(?:\.[0-9]{1,12})?")


def parse(text: str, reading: Reading) -> RealityVerdict:
    """The label of the last `<answer>` that holds 1 (real) or 0 (generated); thoughts need no end.

    `lenient` also takes the words real and fake, punctuation around them, an unclosed tag, and an
    answer that is nothing but the label. A digit and a word that disagree are ambiguous.
    """
    return RealityVerdict(label=first_read(_labels(text, reading)))


def _labels(text: str, reading: Reading) -> Iterator[Label | Unparsed]:
    pieces = tagged(text, "answer", "strict")
    yield next((_DIGITS[piece] for piece in reversed(pieces) if piece in _DIGITS), _refuse(pieces))
    if reading.mode == "lenient":
        pieces = tagged(text, "answer", "lenient")
        yield first_read(map(_loose_label, reversed(pieces)))
        if not pieces and not isinstance(
            bare := _loose_label(after_thinking(text).strip()), Unparsed
        ):
            yield bare


def _loose_label(piece: str) -> Label | Unparsed:
    found = _LOOSE.fullmatch(piece) if len(piece) <= SHORT else None
    said = set[Label]()
    if found and found["digit"]:
        said.add(_DIGITS[found["digit"]])
    if found and found["word"]:
        said.add(_WORDS[found["word"].lower()])
    if len(said) > 1:
        return unparsed(UnparsedReason.AMBIGUOUS, piece)
    return said.pop() if said else _refuse([piece])


def _refuse(pieces: list[str]) -> Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    number = _NUMBER.fullmatch(pieces[-1]) is not None and pieces[-1] not in _DIGITS
    return unparsed(UnparsedReason.OUT_OF_RANGE if number else UnparsedReason.MALFORMED, pieces[-1])
