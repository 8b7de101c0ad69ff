"""From an answer's text to a `RealityVerdict`."""

import re
from collections.abc import Iterator
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed, UnparsedReason
from unreel.protocols.claims import read_claim
from unreel.protocols.protocol import Mode, Reading
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

_PLACEHOLDER: Final = "answer here"
"""Stands in the example that the prompt gives, which some models repeat."""
_DIGITS: Final = {"1": Label.REAL, "0": Label.GENERATED}
# "1", "1.", "(1)", "Answer: 1", "so the answer is 0", "1 (real)": a digit that no other one contests.
_DIGIT: Final = re.compile(
    r"(?:^|\b(?:answer|verdict|label|result|prediction)\b[\"'*\s]{0,5}(?::|=|is)?)[\"'*(\[\s]{0,8}(?P<digit>[01])"
    r"(?![\w%/]|[.,:-]\d)",
    re.IGNORECASE | re.ASCII,
)
_ANY_DIGIT: Final = re.compile(r"(?<![\w.])[01](?![\w%]|\.\d)", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,12}(?:\.[0-9]{1,12})?")


def parse(text: str, reading: Reading) -> RealityVerdict:
    """The label of the last `<answer>`: 1 is real, 0 generated; what stands in a thought is not read.

    `lenient` also takes words for the label, in other languages too, punctuation and marks around them,
    an unclosed tag, and an answer in plain words. A digit and a word that disagree are ambiguous.
    """
    body = after_thinking(text).strip()
    if is_no_answer(body):
        return RealityVerdict(label=unparsed(UnparsedReason.MISSING, body))
    return RealityVerdict(label=first_read(_labels(body, reading)))


def _labels(body: str, reading: Reading) -> Iterator[Label | Unparsed]:
    pieces = _answers(body, "strict")
    yield _DIGITS.get(pieces[-1], _refuse(pieces)) if pieces else _refuse(pieces)
    if reading.mode == "lenient":
        plain = unwrapped(body).strip()
        given = json_object(body)
        if pieces := _answers(plain, "lenient"):
            yield _loose_label(pieces[-1])
        elif "answer" in given:
            yield _loose_label(str(given["answer"]))
        elif not isinstance(bare := _loose_label(plain), Unparsed):
            yield bare


def _answers(body: str, mode: Mode) -> list[str]:
    pieces = tagged(body, "answer", mode)
    return [piece for piece in pieces if piece != _PLACEHOLDER] or pieces


def _loose_label(piece: str) -> Label | Unparsed:
    said = {_DIGITS[found["digit"]] for found in _DIGIT.finditer(piece)}
    others = {_DIGITS[found[0]] for found in _ANY_DIGIT.finditer(piece)}
    claim = read_claim(piece)
    if isinstance(claim, Label):
        said.add(claim)
    if len(said) > 1 or (len(others) > 1 and len(piece) <= SHORT):
        return unparsed(UnparsedReason.AMBIGUOUS, piece)
    return said.pop() if said else _refuse([piece])


def _refuse(pieces: list[str]) -> Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    number = _NUMBER.fullmatch(pieces[-1]) is not None and pieces[-1] not in _DIGITS
    return unparsed(UnparsedReason.OUT_OF_RANGE if number else UnparsedReason.MALFORMED, pieces[-1])
