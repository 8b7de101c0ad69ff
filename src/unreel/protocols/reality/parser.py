"""Parser of answers of the protocol `reality`."""

import re
from collections.abc import Iterator
from functools import lru_cache

from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    SHORT,
    choose_first_parsed,
    find_tag_contents,
    is_refusal_or_error,
    strip_markup,
    strip_thinking,
)
from unreel.protocols.field_parser import find_first_json_object
from unreel.protocols.label_claim_parser import (
    is_answer_corrected,
    parse_claimed_label,
    parse_label_field,
)
from unreel.protocols.protocol import AnswerContext, Mode
from unreel.protocols.reality.prompts import CONFIDENCE_PROMPTS

_PLACEHOLDER = "answer here"
"""Placeholder of the prompt's example, which some models repeat."""
_DIGITS = {"1": Label.REAL, "0": Label.GENERATED}
# "1", "1.", "(1)", "Answer: 1", "so the answer is 0", "1 (real)": digits that state an answer.
_DIGIT = re.compile(
    r"(?:^|(?<=\n)(?=\W{0,8}[01]\W{0,5}$)|\b(?:so|hence|thus|therefore)\b(?=\W{0,3}[01]\W{0,3}$)"
    r"|\b(?:answer|verdict|label|result|prediction)\b[\"'*\s]{0,5}(?:is\s?:|:|=|is))[\"'*(\[\s]{0,8}(?P<digit>[01])"
    r"(?=[\"'*)\]\s]{0,5}(?:$|\n|[.,;:(]|[-\u2013\u2014]|because|since|as\s|\(|=))(?![\w%/]|[.,:-]\d)",
    re.IGNORECASE | re.ASCII,
)
_ANY_DIGIT = re.compile(r"(?<![\w.])[01](?![\w%]|\.\d)", re.ASCII)
_CERTAIN = 100
_AMOUNT = r"(?P<sure>[-+]?[0-9]{1,12}(?:\.[0-9]{1,12})?)"
_PLAIN = re.compile(_AMOUNT, re.ASCII)
_LOOSE = re.compile(
    rf"[\"'*(\[\s]{{0,8}}{_AMOUNT}\s{{0,3}}(?:%|percent|(?:/|out\sof)\s{{0,3}}100)?[\"'*)\].\s]{{0,8}}",
    re.IGNORECASE | re.ASCII,
)
_STATED = re.compile(
    rf"\bconfidence\b[\"'*\s]{{0,5}}(?::|=|is)?[\"'*(\s]{{0,8}}{_AMOUNT}(?![\w]|\.\d)",
    re.IGNORECASE | re.ASCII,
)
_CONFIDENCE = re.compile(
    r"<\s{0,3}confidence\s{0,3}>[^<]{0,200}(?:<\s{0,3}/\s{0,3}confidence\s{0,3}>)?",
    re.IGNORECASE | re.ASCII,
)
"""Confidence tag, which is removed before the label is parsed: a confidence of 1 or 0 is not a label."""
_NUMBER = re.compile(r"[-+]?[0-9]{1,12}(?:\.[0-9]{1,12})?")


def parse_reality_answer(text: str, context: AnswerContext) -> RealityVerdict:
    """Parse the label in the last `<answer>` of an answer: 1 is real, 0 is generated.

    Thoughts are ignored. `lenient` also accepts words for the label, in other languages too,
    punctuation around them, an unclosed tag, and an answer in prose. A digit and a word that disagree
    are ambiguous. A confidence is read if the prompt asks for one: a number from 0 to 100 in its tag,
    for `lenient` also with a percent sign, as `85/100`, or as `Confidence: 85`. A possible fraction of
    1, such as 0.9, is ambiguous.
    """
    body = strip_thinking(text).strip()
    asks = context.prompt in CONFIDENCE_PROMPTS
    read = _read_often if len(body) <= SHORT else _parse_reality_verdict
    return read(body, context.mode, asks=asks)


def _parse_reality_verdict(body: str, mode: Mode, *, asks: bool) -> RealityVerdict:
    if is_refusal_or_error(body):
        nothing = Unparsed.of(UnparsedReason.MISSING, body)
        return RealityVerdict(label=nothing, confidence=nothing if asks else None)
    if not asks:
        return RealityVerdict(label=choose_first_parsed(_iter_parsed_labels(body, mode)))
    label = choose_first_parsed(_iter_parsed_labels(_CONFIDENCE.sub("", body), mode))
    return RealityVerdict(
        label=label, confidence=choose_first_parsed(_iter_parsed_confidences(body, mode))
    )


_read_often = lru_cache(maxsize=4096)(_parse_reality_verdict)
"""Cached parser of answers without their thoughts, which often have equal texts."""


def _iter_parsed_confidences(body: str, mode: Mode) -> Iterator[float | Unparsed]:
    pieces = find_tag_contents(body, "confidence", "strict")
    yield _parse_confidence(pieces[-1], _PLAIN) if pieces else Unparsed(UnparsedReason.MISSING)
    if mode == "lenient":
        plain = strip_markup(body).strip()
        stated = [match["sure"] for match in _STATED.finditer(plain)]
        if pieces := find_tag_contents(plain, "confidence", "lenient"):
            yield _parse_confidence(pieces[-1], _LOOSE)
        elif "confidence" in (pairs := find_first_json_object(plain)):
            yield _parse_confidence(str(pairs["confidence"]), _LOOSE)
        elif len(set(stated)) > 1:
            yield Unparsed.of(UnparsedReason.AMBIGUOUS, plain)
        elif stated:
            yield _parse_confidence(stated[0], _LOOSE)


def _parse_confidence(piece: str, pattern: re.Pattern[str]) -> float | Unparsed:
    match = pattern.fullmatch(piece) if len(piece) <= SHORT else None
    if match is None:
        return Unparsed.of(UnparsedReason.MALFORMED, piece)
    sure = float(match["sure"])
    if not 0 <= sure <= _CERTAIN:
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
    return Unparsed.of(UnparsedReason.AMBIGUOUS, piece) if 0 < sure <= 1 else sure


def _iter_parsed_labels(body: str, mode: Mode) -> Iterator[Label | Unparsed]:
    if is_answer_corrected(body):
        yield Unparsed.of(UnparsedReason.AMBIGUOUS, body)
        return
    pieces = _list_answer_pieces(body, "strict")
    yield _DIGITS.get(pieces[-1] if pieces else "", _build_unparsed_label(pieces))
    if mode == "lenient":
        plain = strip_markup(body).strip()
        if pieces := _list_answer_pieces(plain, "lenient"):
            yield _parse_loose_label(pieces[-1])
            return
        stated = parse_label_field(plain, _parse_loose_label)
        yield stated
        if isinstance(stated, Unparsed) and stated.reason is UnparsedReason.MISSING:
            bare = _parse_loose_label(plain)
            yield Unparsed(UnparsedReason.MISSING) if isinstance(bare, Unparsed) else bare


def _list_answer_pieces(body: str, mode: Mode) -> list[str]:
    pieces = find_tag_contents(body, "answer", mode)
    return [piece for piece in pieces if piece != _PLACEHOLDER] or pieces


def _parse_loose_label(piece: str) -> Label | Unparsed:
    labels = {_DIGITS[match["digit"]] for match in _DIGIT.finditer(piece)}
    digits = {_DIGITS[match[0]] for match in _ANY_DIGIT.finditer(piece)}
    claim = parse_claimed_label(piece)
    if isinstance(claim, Label):
        labels.add(claim)
    if len(labels) > 1 or (len(digits) > 1 and len(piece) <= SHORT):
        return Unparsed.of(UnparsedReason.AMBIGUOUS, piece)
    return labels.pop() if labels else _build_unparsed_label([piece])


def _build_unparsed_label(pieces: list[str]) -> Unparsed:
    if not pieces:
        return Unparsed(UnparsedReason.MISSING)
    number = _NUMBER.fullmatch(pieces[-1]) is not None and pieces[-1] not in _DIGITS
    return Unparsed.of(
        UnparsedReason.OUT_OF_RANGE if number else UnparsedReason.MALFORMED, pieces[-1]
    )
