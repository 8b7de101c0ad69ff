"""REAL or FAKE: the label of a `trace` answer."""

import re
from collections.abc import Iterator
from typing import Final

from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed, UnparsedReason
from unreel.protocols.protocol import Mode
from unreel.protocols.text import first_read, is_no_answer, unparsed

_LABELS: Final = {"real": Label.REAL, "fake": Label.GENERATED}
_CAPITALS: Final = re.compile(r"(?<!\w)(?<!\w-)(?:REAL|FAKE)(?!\w|-\w)")
_ANY_CASE: Final = re.compile(r"(?<!\w)(?<!\w-)(?ai:REAL|FAKE)(?!\w|-\w)")
_OPENING: Final = re.compile(r"\W{0,20}")
_ALTERNATIVE: Final = re.compile(r"['\"*/|,\s]{1,5}(?:(?:or|and)\b)?['\"*\s]{0,5}", re.IGNORECASE)
_NEGATION: Final = re.compile(
    r"(?:\b(?:not|non|nor|neither|never)|n['\u2019]t)['\"*\s-]{1,5}$", re.IGNORECASE
)
_NEGATION_REACH: Final = 16
# "fake." names the clip; "real people" names something in it.
_ENDS_THE_CLAUSE: Final = re.compile(r"['\"*\s]{0,5}(?:$|[.,;:!?<)\n])")


_REASON_STARTS: Final = re.compile(r"<\s{0,3}explanation\b|\bthe reason is\b", re.IGNORECASE)


def read_label(body: str, mode: Mode) -> Label | Unparsed:
    """The word REAL or FAKE that opens the answer, else the only one of the two that it holds.

    Both words are ambiguous, unless one opens the answer and is not offered as an alternative
    ("REAL or FAKE"); so is a word that is denied ("not REAL"). A refusal or an error message that
    names one is no answer. `lenient` also takes small letters before the explanation, where the
    word ends its clause: "real people" is no label.
    """
    return first_read(_attempts(body.strip(), mode))


def _attempts(body: str, mode: Mode) -> Iterator[Label | Unparsed]:
    yield _opening(body, _CAPITALS)
    yield _only(body, _CAPITALS)
    if mode == "lenient":
        reason = _REASON_STARTS.search(body)
        claim = body[: reason.start()] if reason else body
        yield _opening(claim, _ANY_CASE)
        yield _only(claim, _ANY_CASE)


def _opening(body: str, words: re.Pattern[str]) -> Label | Unparsed:
    opening = _OPENING.match(body)
    word = words.match(body, opening.end() if opening else 0)
    if word is None or not _may_be_label(word, words):
        return Unparsed(UnparsedReason.MISSING)
    offered = _ALTERNATIVE.match(body, word.end())
    other = words.match(body, offered.end()) if offered else None
    if other and other[0].lower() != word[0].lower():
        return unparsed(UnparsedReason.AMBIGUOUS, body)
    return _LABELS[word[0].lower()]


def _only(body: str, words: re.Pattern[str]) -> Label | Unparsed:
    if is_no_answer(body):
        return unparsed(UnparsedReason.MISSING, body)
    found = list(words.finditer(body))
    said = {word[0].lower() for word in found}
    if len(said) > 1 or any(map(_is_denied, found)):
        return unparsed(UnparsedReason.AMBIGUOUS, body)
    if not any(_may_be_label(word, words) for word in found):
        return unparsed(UnparsedReason.MISSING, body)
    return _LABELS[said.pop()]


def _is_denied(word: re.Match[str]) -> bool:
    before = word.string[max(0, word.start() - _NEGATION_REACH) : word.start()]
    return _NEGATION.search(before) is not None


def _may_be_label(word: re.Match[str], words: re.Pattern[str]) -> bool:
    return words is _CAPITALS or _ENDS_THE_CLAUSE.match(word.string, word.end()) is not None
