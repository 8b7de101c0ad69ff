"""Answers to the prompts of published checkpoints: their forms as data, and one strict parser for all."""

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from unreel.core.errors import UnknownNameError
from unreel.core.judgement import Label
from unreel.core.trace import Category
from unreel.core.verdict import (
    LocateVerdict,
    RealismVerdict,
    RealityVerdict,
    Unparsed,
    UnparsedReason,
)
from unreel.protocols.answer_text import SHORT, find_tag_contents, strip_thinking
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import list_protocol_names
from unreel.recipes.validation import Line, RecipeSection

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)
_LOWEST, _HIGHEST = 1, 5


def require_protocol(name: str) -> str:
    """Return the name of a protocol; raise `UnknownNameError` if there is none."""
    if name not in list_protocol_names():
        raise UnknownNameError("protocol", name, list_protocol_names())
    return name


class AnswerFormat(RecipeSection):
    """Form of the answers to the prompt of a checkpoint for one protocol.

    With `labels` an answer states a label, and with `categories` also segments; otherwise it states a
    score. The thoughts of an answer are ignored, except for segments.
    """

    protocol: Annotated[Line, AfterValidator(require_protocol)]
    place: Literal["whole", "boxed", "tag", "names"]
    """Place of the verdict: the whole answer, the content of `\\boxed{}` or of the tag `tag`, or the number after
    the name `score`."""
    tag: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")] | None = None
    names: tuple[Line, ...] = ()
    """Texts before the numbers of an answer, in order; each number must be there."""
    score: Line | None = None
    """The one of `names` whose number is the score."""
    labels: dict[Line, Label] = Field(default={})
    """Words of the verdict with their labels."""
    decimals: bool = False
    """Whether a score may have decimals; it is rounded to a whole one, halves up."""
    categories: dict[Line, Category] = Field(default={})
    """Names of the owner for kinds of traces, with the nearest kind of unreel."""

    @model_validator(mode="after")
    def _require_fields_of_place(self) -> "AnswerFormat":
        rules = {
            "tag is required for place 'tag' only": (self.tag is None) is (self.place == "tag"),
            "score is required for place 'names' only": (self.score is None)
            is (self.place == "names"),
            "score must be one of names": self.score is not None and self.score not in self.names,
            "categories require labels": bool(self.categories) and not self.labels,
        }
        for rule, is_broken in rules.items():
            if is_broken:
                raise ValueError(rule)
        return self


def parse_owner_answer(
    text: str, answer_format: AnswerFormat, space: BoxSpace | None = None
) -> RealityVerdict | RealismVerdict | LocateVerdict:
    """Parse an answer in the form `answer_format`; anything that deviates from it is unparsed.

    Boxes are in `space`. A category is the nearest one of unreel, and the name of the owner is the
    explanation of the segment.
    """
    found = _find_verdict_text(strip_thinking(text).strip(), answer_format)
    if not answer_format.labels:
        missing = Unparsed(UnparsedReason.MISSING)
        score = found if isinstance(found, Unparsed) else _parse_score(found, answer_format)
        return RealismVerdict(score=score, problem=missing, adherence=missing)
    label: Label | Unparsed
    if isinstance(found, Unparsed):
        label = found
    else:
        malformed = Unparsed.of(UnparsedReason.MALFORMED, found)
        label = answer_format.labels.get(found, malformed)
    if not answer_format.categories:
        return RealityVerdict(label=label)
    if isinstance(label, Unparsed):
        return LocateVerdict(segments=label)
    if label is Label.REAL:
        return LocateVerdict(segments=())
    if space is None:
        raise ValueError("space is required for the boxes of segments")
    from unreel.protocols.locate.parser import parse_tagged_segments  # takes 30 ms to compile

    segments = parse_tagged_segments(text, "strict", space, categories=answer_format.categories)
    if not isinstance(segments, Unparsed):
        n_boxes = sum(bool(segment.trace.track) for segment in segments)
        if text.count("<bbox>") != n_boxes:
            malformed = Unparsed.of(UnparsedReason.MALFORMED, text[text.find("<bbox>") :])
            return LocateVerdict(segments=malformed)
    return LocateVerdict(segments=segments)


def _find_verdict_text(body: str, answer_format: AnswerFormat) -> str | Unparsed:
    """Return the text that states the verdict; it must be there exactly once."""
    match answer_format.place:
        case "whole":
            pieces, n_marks = [body] if body else [], 1
        case "boxed":
            pieces, n_marks = _BOXED.findall(body), body.count("\\boxed")
        case "names":
            return _find_named_number(body, answer_format)
        case _:
            tag = str(answer_format.tag)
            pieces = find_tag_contents(body, tag, "strict")
            n_marks = max(body.count(f"<{tag}>"), body.count(f"</{tag}>"))
    if not pieces:
        return Unparsed.of(UnparsedReason.MISSING, body)
    if len(pieces) > 1 or n_marks > 1:
        return Unparsed.of(UnparsedReason.AMBIGUOUS, " ".join(pieces))
    if len(pieces[0]) > SHORT:
        return Unparsed.of(UnparsedReason.MALFORMED, pieces[0])
    return pieces[0].strip()


def _find_named_number(body: str, answer_format: AnswerFormat) -> str | Unparsed:
    found: dict[str, re.Match[str]] = {}
    for name in answer_format.names:
        matches = list(_iter_numbers_after(name, body))
        if len(matches) != 1:
            reason = UnparsedReason.AMBIGUOUS if matches else UnparsedReason.MISSING
            return Unparsed.of(reason, name)
        found[name] = matches[0]
    starts = [match.start() for match in found.values()]
    if starts != sorted(starts):
        return Unparsed.of(UnparsedReason.MALFORMED, body)
    for match in found.values():
        score = _parse_score(match["number"], answer_format)
        if isinstance(score, Unparsed):
            return score
    return found[str(answer_format.score)]["number"]


def _iter_numbers_after(name: str, body: str) -> Iterator[re.Match[str]]:
    pattern = rf"(?<!\w){re.escape(name)}[ \t]*(?P<number>-?[0-9][^\s;,]*+)(?![;,][0-9]|[ \t]*/)"
    return re.finditer(pattern, body)


def _parse_score(piece: str, answer_format: AnswerFormat) -> int | Unparsed:
    pattern = _DECIMAL if answer_format.decimals else _INTEGER
    if pattern.fullmatch(piece) is None:
        return Unparsed.of(UnparsedReason.MALFORMED, piece)
    number = Decimal(piece)
    if not _LOWEST <= number <= _HIGHEST:
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, piece)
    return int(number.quantize(Decimal(1), ROUND_HALF_UP))
