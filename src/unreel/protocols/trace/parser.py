"""Parser of answers of the protocol `trace`, and the answers that a reviewer is trained to give."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, TypeVar

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.verdict import TraceVerdict, Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    choose_first_parsed,
    find_tag_contents,
    is_refusal_or_error,
    strip_markup,
    strip_thinking,
)
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.claim_words import CORRECTS
from unreel.protocols.field_parser import parse_answer_fields
from unreel.protocols.label_claim_parser import parse_claimed_label, parse_label_field
from unreel.protocols.protocol import (
    AnswerContext,
    Mode,
    collapse_whitespace,
    require_training_answer_parses_back,
)
from unreel.protocols.trace.box_parser import find_box_texts, parse_trace_box
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.protocols.trace.onset_parser import find_onset_texts, parse_trace_onset
from unreel.protocols.trace.prompts import SENTENCE_PROMPTS, asks_onset_time

_LABELS = {"real": Label.REAL, "fake": Label.GENERATED}
_WORD = r"(?P<word>REAL|FAKE)"
_CAPITAL = re.compile(r"(?<![\w-])(?:REAL|FAKE)(?![\w-])")
# Answers: "FAKE.", "'REAL'", "FAKE <coordinates>"; none: "REAL or FAKE", "FAKE?", "REAL people".
_OPENING = re.compile(
    rf"[\W_]{{0,20}}{_WORD}(?![\w-])(?=['\"*`_)\s]{{0,5}}(?:$|[.,;:!<(\n]|[-\u2013\u2014]\s|(?P=word)))"
)
_STATEMENT = re.compile(
    r"(?:^|(?<=[.!\n:]))['\"*`\s]{0,5}"
    r"(?:(?:(?:[Tt]he|[Tt]his)\s(?:video|clip|footage)|[Ii]t)\s(?:is|looks|appears\sto\sbe)\s(?:a\s)?)?"
    rf"['\"*`]{{0,3}}{_WORD}(?=['\"*`\s]{{0,5}}(?:$|[.!\n<(]))"
)
_NO_WORDS = re.compile(r"(?:[\s\[\]0-9.,]|</?(?:coordinates|start_time)>)*", re.ASCII)
"""Box and time in the requested form, which contain no claim about the label."""
_BEFORE_REASON = re.compile(r"<\s{0,3}explanation\b|\bthe reason is\b", re.IGNORECASE)


def parse_trace_label(body: str, mode: Mode) -> Label | Unparsed:
    """Parse the label of an answer: REAL or FAKE at its start, else the only one that it states.

    The rest of the text before the explanation may not contradict it. A refusal or an error message
    is no answer. `lenient` also accepts a field named verdict, and claims in prose in lower case,
    in other words and in other languages, with their negations and corrections.
    """
    reason = _BEFORE_REASON.search(body)
    claim = (body[: reason.start()] if reason else body).strip()
    return choose_first_parsed(_iter_parsed_labels(claim, mode))


def _iter_parsed_labels(claim: str, mode: Mode) -> Iterator[Label | Unparsed]:
    yield _parse_opening_label(claim)
    yield _parse_stated_label(claim)
    if mode == "lenient" and not is_refusal_or_error(claim):
        stated = parse_label_field(claim, parse_claimed_label)
        yield stated
        if isinstance(stated, Unparsed) and stated.reason is UnparsedReason.MISSING:
            yield parse_claimed_label(claim)


def _parse_opening_label(claim: str) -> Label | Unparsed:
    word = _OPENING.match(claim)
    if word is None:
        return Unparsed(UnparsedReason.MISSING)
    label = _LABELS[word["word"].lower()]
    rest = claim[word.end() :]
    if _NO_WORDS.fullmatch(rest):
        return label
    claimed = parse_claimed_label(rest)
    is_corrected = CORRECTS.search(rest) is not None
    if is_corrected or (isinstance(claimed, Label) and claimed is not label):
        return Unparsed.of(UnparsedReason.AMBIGUOUS, claim)
    return label


def _parse_stated_label(claim: str) -> Label | Unparsed:
    if is_refusal_or_error(claim):
        return Unparsed.of(UnparsedReason.MISSING, claim)
    labels = {_LABELS[match["word"].lower()] for match in _STATEMENT.finditer(claim)}
    understood = parse_claimed_label(claim)
    if not _CAPITAL.search(claim):
        return Unparsed.of(UnparsedReason.MISSING, claim)
    if isinstance(understood, Unparsed) or labels == {understood}:
        return understood
    return Unparsed.of(UnparsedReason.AMBIGUOUS, claim)


R = TypeVar("R")
Part = Literal["place", "time", "reason"]

_TAGS = {"place": "coordinates", "time": "start_time", "reason": "explanation"}
_Y_FIRST = "box_2d"
_LONGEST = 20_000
"""Maximum number of characters of a text that is searched for a box and a time in no known form."""
_PLACE_AND_TIME = {
    "strict": re.compile(
        r"The unnatural part is at (?P<place>\[[^\[\]]{0,100}\])"
        r"(?: starting (?P<time>\S{1,30}) seconds)?"
    ),
    "lenient": re.compile(
        r"unnatural\s{1,3}parts?\s{1,3}(?:is|are)\s{1,3}(?:at\s{1,3})?"
        r"(?P<place>[\[(][^\[\]()]{0,100}[\])])"
        r"(?:[,;]?\s{1,3}starting\s{1,3}(?:(?:at|from)\s{1,3})?"
        r"(?P<time>[^,;\n]{1,40}?)(?=\.\s|\.?$|[,;\n]))?",
        re.IGNORECASE | re.ASCII,
    ),
}
_REASON = {
    "strict": re.compile(r"The reason is because (?P<reason>.+)", re.DOTALL),
    "lenient": re.compile(
        r"\bthe\s{1,3}reason\s{1,3}is\s{1,3}(?:because|that)\s{1,3}(?P<reason>.+)",
        re.DOTALL | re.IGNORECASE | re.ASCII,
    ),
}


def parse_trace_answer(text: str, context: AnswerContext) -> TraceVerdict:
    """Parse the label, box, onset and explanation of an answer; thoughts are ignored.

    `strict` requires the format of `context.prompt`: tags, or the trained sentences. A part with
    two different contents is ambiguous. `lenient` reads all that `strict` reads, else either format
    with its usual errors, and the first of several contents. Boxes are read in `context.space` and
    clipped to the frame. Times are seconds from the clip's start: a negative time is out of range,
    and a time after the clip's end is not changed, because the scorer limits the distance. Raise
    `InvalidValueError` if `context.space` is missing.
    """
    space = context.space
    if space is None:
        raise InvalidValueError(
            "the boxes of a trace need their space. Declare it: AnswerContext(space=parse_box_space(...))"
        )
    body = strip_thinking(text)
    parse = partial(parse_trace_box, space=space)
    label = parse_trace_label(body, context.mode)
    may_have_traces = context.mode == "lenient" and label is Label.GENERATED
    prose = strip_markup(body) if may_have_traces and len(body) <= _LONGEST else ""
    return TraceVerdict(
        label=label,
        box=_parse_prose_fallback(
            _parse_part(body, "place", context=context, read=parse), find_box_texts(prose), parse
        ),
        start_us=_parse_prose_fallback(
            _parse_part(body, "time", context=context, read=parse_trace_onset),
            find_onset_texts(prose),
            parse_trace_onset,
        ),
        explanation=_parse_part(body, "reason", context=context, read=lambda piece, _mode: piece),
    )


def _parse_prose_fallback(
    formal: R | Unparsed, pieces: list[str], read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    """Return the parsed part `formal` or, if missing, the only value that `read` finds in prose `pieces`."""
    if not isinstance(formal, Unparsed) or formal.reason is not UnparsedReason.MISSING:
        return formal
    readings = {
        value for piece in pieces if not isinstance(value := read(piece, "lenient"), Unparsed)
    }
    return readings.pop() if len(readings) == 1 else formal


def _parse_part(
    body: str, part: Part, *, context: AnswerContext, read: Callable[[str, Mode], R | Unparsed]
) -> R | Unparsed:
    listers = [_list_tag_pieces, _list_sentence_pieces]
    if context.prompt in SENTENCE_PROMPTS:
        listers.reverse()
    attempts: list[tuple[Mode, Callable[[str, Part, Mode], list[str]]]] = [("strict", listers[0])]
    if context.mode == "lenient":
        attempts += [("lenient", lister) for lister in (*listers, _list_field_pieces)]

    def parse(mode: Mode, pieces: list[str]) -> R | Unparsed:
        if not pieces:
            return Unparsed(UnparsedReason.MISSING)
        if mode == "strict" and len(set(pieces)) > 1:
            return Unparsed.of(UnparsedReason.AMBIGUOUS, pieces[0])
        return read(pieces[0], mode)

    return choose_first_parsed(parse(mode, lister(body, part, mode)) for mode, lister in attempts)


def _list_tag_pieces(body: str, part: Part, mode: Mode) -> list[str]:
    return find_tag_contents(body, _TAGS[part], mode)


def _list_sentence_pieces(body: str, part: Part, mode: Mode) -> list[str]:
    pattern = _REASON[mode] if part == "reason" else _PLACE_AND_TIME[mode]
    pieces = (sentence[part] or "" for sentence in pattern.finditer(body))
    return [piece.strip() for piece in pieces if piece.strip()]


def _list_field_pieces(body: str, part: Part, _mode: Mode) -> list[str]:
    return [
        f"{field.name}: {field.value}" if field.name == _Y_FIRST else field.value
        for field in parse_answer_fields(strip_markup(body))
        if field.kind == part and field.value and (part != "reason" or field.value in body)
    ]


_NO_EXPLANATION = frozenset({"fine-tuning-no-explanation", "fine-tuning-no-both"})
_COARSEST = 2
"""Minimum width and height of a space in units; with fewer, every box in whole units is the whole frame."""


def format_trace_training_answer(truth: TraceTruth, prompt: str, space: BoxSpace | None) -> str:
    """Return the training answer for one annotation row of `trace`.

    The box is the first box of the track, in whole units of `space` (at least one unit wide and
    high). The time is the start of the span in seconds, to two decimal places. Parts that the row
    lacks are omitted. Raise `InvalidValueError` if `space` has no whole units, the trace begins
    after the clip's end, or the answer cannot be parsed back.
    """
    if space is None or min(space.width, space.height) < _COARSEST:
        raise InvalidValueError(
            "a box is taught in whole units. Declare a space that has them, for example permille"
        )
    if truth.label is Label.REAL:
        return "REAL. The video is real. There is no unnatural part."
    if truth.start_us is not None and truth.start_us >= truth.duration_us:
        raise InvalidValueError("the trace begins after the clip's end")
    reason = "" if prompt in _NO_EXPLANATION else collapse_whitespace(truth.explanation)
    sentences = ["FAKE. The video is AI-generated."]
    if truth.box is not None:
        start_us = truth.start_us if asks_onset_time(prompt) else None
        when = ""
        if start_us is not None:
            seconds = f"{start_us / 1_000_000:.2f}".rstrip("0").rstrip(".")
            when = f" starting {seconds} seconds"
        sentences.append(f"The unnatural part is at {_format_integer_box(truth.box, space)}{when}.")
    if reason:
        sentences.append(f"The reason is because {reason}")
    text = " ".join(sentences)
    verdict = parse_trace_answer(text, AnswerContext(prompt=prompt, space=space))
    explanation = "" if isinstance(verdict.explanation, Unparsed) else verdict.explanation
    require_training_answer_parses_back(
        parsed=(verdict.label, isinstance(verdict.box, Box), explanation),
        meant=(truth.label, truth.box is not None, reason),
    )
    return text


def _format_integer_box(box: Box, space: BoxSpace) -> str:
    x0, y0, x1, y1 = (round(corner) for corner in space.corners(box))
    x0, y0 = min(x0, space.width - 1), min(y0, space.height - 1)
    return str([x0, y0, max(x1, x0 + 1), max(y1, y0 + 1)])
