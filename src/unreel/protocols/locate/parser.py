"""Parser of answers of the protocol `locate`."""

import re
from collections.abc import Iterator

from unreel.core.errors import InvalidValueError
from unreel.core.span import convert_to_microseconds
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    build_unparsed_result,
    choose_first_parsed_result,
    find_tag_contents,
    strip_thinking,
)
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.json_parser import (
    MAX_SEGMENTS,
    Segments,
    UnreadableSegmentError,
    build_segment_box,
    build_segment_span,
    parse_json_segments,
    parse_segment_category,
)
from unreel.protocols.locate.prompts import TAGGED_PROMPTS
from unreel.protocols.protocol import AnswerContext, Mode
from unreel.protocols.trace.box_parser import NUMBER

_NUMBERS = rf"\[\s{{0,3}}(-?{NUMBER}(?:\s{{0,3}},\s{{0,3}}-?{NUMBER}){{1,3}})\s{{0,3}}\]"
_STRICT = re.compile(
    rf"<type>(?P<type>[^<>]{{1,100}})</type> in <t>{_NUMBERS}</t>(?: at <bbox>{_NUMBERS}</bbox>)?"
)
_LENIENT = re.compile(
    rf"<type>(?P<type>[^<>]{{0,100}})</type>[^<>]{{0,60}}<t>[^<>\[\]]{{0,20}}{_NUMBERS}[^<>\[\]]{{0,20}}</t>"
    rf"(?:[^<>]{{0,60}}<bbox>[^<>\[\]]{{0,20}}{_NUMBERS}[^<>\[\]]{{0,20}}</bbox>)?",
    re.IGNORECASE | re.ASCII,
)
_TIMES = 2
_CORNERS = 4
_OPENS = "<type>"


def parse_tagged_segments(text: str, mode: Mode, space: BoxSpace) -> Segments | Unparsed:
    """Parse the tagged segments of an answer, which may be in the thoughts, and the label after them.

    `strict` requires `<answer>Real</answer>` or `<answer>Fake</answer>`, and well-formed tags only.
    `lenient` also reads tags without a label, and skips segments that it cannot read. `Real` gives an
    empty list; for `Fake` without a segment, the segments are missing.
    """
    body = strip_thinking(text)
    labels = {answer.lower() for answer in find_tag_contents(body, "answer", mode)}
    if labels == {"real"}:
        return ()
    if labels != {"fake"} and (mode == "strict" or labels):
        reason = UnparsedReason.AMBIGUOUS if len(labels) > 1 else UnparsedReason.MALFORMED
        return build_unparsed_result(
            reason if labels else UnparsedReason.MISSING, " ".join(sorted(labels))
        )
    source = body if _OPENS in body else text
    segments: list[LocatedSegment] = []
    problems: list[Unparsed] = []
    pattern = _STRICT if mode == "strict" else _LENIENT
    for number, tags in enumerate(pattern.finditer(source)):
        if number >= MAX_SEGMENTS:
            return build_unparsed_result(
                UnparsedReason.OUT_OF_RANGE, f"more than {MAX_SEGMENTS} segments"
            )
        try:
            name, times, corners = tags.groups()
            seconds = list(_iter_listed_numbers(times))
            if len(seconds) != _TIMES:
                raise UnreadableSegmentError(UnparsedReason.MALFORMED, times)
            span = build_segment_span(
                convert_to_microseconds(seconds[0]), convert_to_microseconds(seconds[1]), times
            )
            categories: frozenset[Category] = frozenset()
            track: tuple[BoxAt, ...] = ()
            try:
                categories = frozenset({parse_segment_category(name)})
            except UnreadableSegmentError:
                if mode == "strict":
                    raise
            try:
                track = _parse_tagged_box(corners, span.start_us, space)
            except UnreadableSegmentError:
                if mode == "strict":
                    raise
            segments.append(LocatedSegment(Trace(span=span, track=track, categories=categories)))
        except UnreadableSegmentError as error:
            problems.append(error.unparsed)
    if mode == "strict" and source.count(_OPENS) > len(segments) + len(problems):
        problems.append(
            build_unparsed_result(UnparsedReason.MALFORMED, source[source.find(_OPENS) :][:200])
        )
    if problems and (mode == "strict" or not segments):
        return problems[0]
    return tuple(segments) if segments else Unparsed(UnparsedReason.MISSING)


def _parse_tagged_box(corners: str | None, start_us: int, space: BoxSpace) -> tuple[BoxAt, ...]:
    if corners is None:
        return ()
    numbers = list(_iter_listed_numbers(corners))
    if len(numbers) != _CORNERS:
        raise UnreadableSegmentError(UnparsedReason.MALFORMED, corners)
    return (BoxAt(start_us, build_segment_box(numbers, space)),)


def _iter_listed_numbers(piece: str) -> Iterator[float]:
    return (float(number) for number in piece.split(","))


def parse_locate_answer(text: str, context: AnswerContext) -> LocateVerdict:
    """Parse the segments in an answer: JSON or tags, as `context.prompt` requests.

    `lenient` accepts either format. Times are seconds from the start of the clip. A segment that ends
    before it starts, a number too large for any clip and a box without area are out of range; NaN and
    infinity are not numbers. Boxes are in `context.space` and are clipped to the frame.

    Raises:
        InvalidValueError: `context.space` is missing.
    """
    space = context.space
    if space is None:
        raise InvalidValueError(
            "the boxes of a segment need their space. Declare it: AnswerContext(space=parse_box_space(...))"
        )
    body = strip_thinking(text)

    def read(style: str, mode: Mode) -> Segments | Unparsed:
        return (
            parse_tagged_segments(text, mode, space)
            if style == "tagged"
            else parse_json_segments(body, mode, space)
        )

    styles = ["tagged", "json"] if context.prompt in TAGGED_PROMPTS else ["json", "tagged"]
    attempts = [read(styles[0], "strict")]
    if context.mode == "lenient":
        attempts += [read(style, "lenient") for style in styles]
    return LocateVerdict(segments=choose_first_parsed_result(attempts))
