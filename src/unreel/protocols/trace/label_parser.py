"""REAL or FAKE: the label of a `trace` answer."""

import re
from collections.abc import Iterator
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.claim_parser import read_claim, read_stated
from unreel.protocols.protocol import Mode
from unreel.protocols.text import build_unparsed, is_no_answer, parse_first

_LABELS: Final = {"real": Label.REAL, "fake": Label.GENERATED}
_WORD: Final = r"(?P<word>REAL|FAKE)"
_CAPITAL: Final = re.compile(r"(?<![\w-])(?:REAL|FAKE)(?![\w-])")
# "FAKE.", "'REAL'", "FAKE <coordinates>" answer; "REAL or FAKE", "FAKE?" and "REAL people" do not.
_OPENING: Final = re.compile(
    rf"[\W_]{{0,20}}{_WORD}(?![\w-])(?=['\"*`_)\s]{{0,5}}(?:$|[.,;:!<(\n]|[-\u2013\u2014]\s|(?P=word)))"
)
_STATEMENT: Final = re.compile(
    r"(?:^|(?<=[.!\n:]))['\"*`\s]{0,5}"
    r"(?:(?:(?:[Tt]he|[Tt]his)\s(?:video|clip|footage)|[Ii]t)\s(?:is|looks|appears\sto\sbe)\s(?:a\s)?)?"
    rf"['\"*`]{{0,3}}{_WORD}(?=['\"*`\s]{{0,5}}(?:$|[.!\n<(]))"
)
_NO_WORDS: Final = re.compile(r"(?:[\s\[\]0-9.,]|</?(?:coordinates|start_time)>)*", re.ASCII)
"""The box and the time as they were asked for: nothing in them speaks of a side."""
_REASON: Final = re.compile(r"<\s{0,3}explanation\b|\bthe reason is\b", re.IGNORECASE)


def read_label(body: str, mode: Mode) -> Label | Unparsed:
    """Parse REAL or FAKE at the start of the answer, otherwise the only one that a sentence states.

    The text before the explanation may not contradict it; a refusal or an error message is no
    answer. `lenient` also accepts the field named verdict, otherwise a claim in prose in lower
    case, other words and other languages, with its denials and second thoughts.
    """
    reason = _REASON.search(body)
    claim = (body[: reason.start()] if reason else body).strip()
    return parse_first(_iter_parsed_labels(claim, mode))


def _iter_parsed_labels(claim: str, mode: Mode) -> Iterator[Label | Unparsed]:
    yield _parse_opening_label(claim)
    yield _parse_stated_label(claim)
    if mode == "lenient":
        yield from _iter_lenient_labels(claim)


def _parse_opening_label(claim: str) -> Label | Unparsed:
    word = _OPENING.match(claim)
    if word is None:
        return Unparsed(UnparsedReason.MISSING)
    label = _LABELS[word["word"].lower()]
    behind = claim[word.end() :]
    if _NO_WORDS.fullmatch(behind):
        return label
    rest = read_claim(behind)
    if isinstance(rest, Label) and rest is not label:
        return build_unparsed(UnparsedReason.AMBIGUOUS, claim)
    return label


def _parse_stated_label(claim: str) -> Label | Unparsed:
    if is_no_answer(claim):
        return build_unparsed(UnparsedReason.MISSING, claim)
    said = {_LABELS[found["word"].lower()] for found in _STATEMENT.finditer(claim)}
    understood = read_claim(claim)
    if not _CAPITAL.search(claim):
        return build_unparsed(UnparsedReason.MISSING, claim)
    if isinstance(understood, Unparsed) or said == {understood}:
        return understood
    return build_unparsed(UnparsedReason.AMBIGUOUS, claim)


def _iter_lenient_labels(claim: str) -> Iterator[Label | Unparsed]:
    if is_no_answer(claim):
        return
    stated = read_stated(claim, read_claim)
    yield stated
    if isinstance(stated, Unparsed) and stated.reason is UnparsedReason.MISSING:
        yield read_claim(claim)
