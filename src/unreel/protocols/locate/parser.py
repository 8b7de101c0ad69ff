"""Parser of answers of the protocol `locate`."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

from unreel.core.errors import InvalidValueError
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed, UnparsedReason
from unreel.protocols.answer_text import (
    choose_first_parsed,
    find_tag_contents,
    is_refusal_or_error,
    strip_thinking,
)
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.prompts import TAGGED_PROMPTS
from unreel.protocols.protocol import AnswerContext, Mode
from unreel.protocols.trace.box_parser import NUMBER
from unreel.protocols.trace.onset_parser import parse_trace_onset

Segments = tuple[LocatedSegment, ...]

MAX_SEGMENTS = 1_000
MAX_BOXES = 10_000
MAX_SECONDS = 10_000_000
_LONGEST = 4_000_000
_TRIES = 8
_PAIR = 2
_CORNERS = 4
_OPENING = re.compile(r"[\[{]")
_OTHER_UNIT = re.compile(
    r"[\"'](?:time_?)?units?[\"']\s{0,3}:\s{0,3}[\"'](?!s(?:ec(?:ond)?s?)?[\"'])[^\"']{0,20}",
    re.IGNORECASE,
)
"""Field that declares a unit of time other than seconds."""
_LISTS = ("segments", "fake_segments", "generated_segments", "anomalies", "traces", "results")
_NAMES = frozenset({"start", "end", "boxes", "category", "confidence", "reason"})
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "start": ("start", "start_time", "start_s", "start_seconds", "from", "begin", "onset"),
    "end": ("end", "end_time", "end_s", "end_seconds", "to", "stop"),
    "boxes": ("boxes", "box", "bbox", "bbox_2d", "track", "region"),
    "category": ("category", "type", "categories", "kind"),
    "confidence": ("confidence", "score", "probability"),
    "reason": ("reason", "explanation", "why", "description"),
    "time": ("time", "at", "t", "timestamp"),
}


class UnreadableSegmentError(Exception):
    """Exception that ends the parsing of one segment or one of its parts, with the reason."""

    def __init__(self, reason: UnparsedReason, value: object) -> None:
        super().__init__(reason)
        self.unparsed = Unparsed.of(reason, str(value)[:200])


def parse_json_segments(body: str, mode: Mode, space: BoxSpace) -> Segments | Unparsed:
    """Parse the JSON list of segments in the answer `body`.

    `strict` accepts only a JSON list of objects with the requested names, and rejects the whole list
    if one object is wrong. `lenient` also reads a list inside other text and other usual names, and
    skips objects and optional parts that it cannot read.
    """
    if len(body) > _LONGEST:
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, body)
    if mode == "strict":
        value = _decode_json_list(body.strip())
        return value if isinstance(value, Unparsed) else _parse_segment_list(value, mode, space)
    if is_refusal_or_error(body):
        return Unparsed.of(UnparsedReason.MISSING, body)
    if other_unit := _OTHER_UNIT.search(body):
        return Unparsed.of(UnparsedReason.AMBIGUOUS, other_unit[0])
    results = [_parse_segment_list(value, mode, space) for value in _iter_segment_lists(body)]
    lists = [segments for segments in results if not isinstance(segments, Unparsed)]
    while len(lists) > 1 and not lists[0]:  # empty brackets in the text before the list
        lists.pop(0)
    if len(set(lists)) > 1:  # one of them may be withdrawn in the text between
        return Unparsed.of(UnparsedReason.AMBIGUOUS, f"{len(lists)} lists of segments")
    return choose_first_parsed([*lists, *results])


def _decode_json_list(text: str) -> Any:
    if not text.startswith("["):
        return Unparsed.of(UnparsedReason.MALFORMED if text else UnparsedReason.MISSING, text)
    try:
        return json.loads(text, parse_constant=_reject_json_constant)
    except (ValueError, RecursionError):
        return Unparsed.of(UnparsedReason.MALFORMED, text)


def _reject_json_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _iter_segment_lists(body: str) -> Iterator[Any]:
    """Yield the JSON lists of segments among the first JSON values of a text."""
    decoder = json.JSONDecoder(parse_constant=_reject_json_constant)
    end = 0
    for opening in islice(_OPENING.finditer(body), _TRIES):
        if opening.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(body, opening.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            listed = next((value[name] for name in _LISTS if name in value), None)
            value = (
                listed
                if isinstance(listed, list)
                else [value]
                if _rename_segment_keys(value)
                else None
            )
        if isinstance(value, list) and all(
            isinstance(part, dict) or (isinstance(part, list) and len(part) == _PAIR)
            for part in value
        ):
            yield value


def _rename_segment_keys(segment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known parts of a segment object under their requested names; empty without a start."""
    plain = {str(name).strip().lower().replace(" ", "_"): part for name, part in segment.items()}
    renamed = {
        name: next(plain[alias] for alias in aliases if alias in plain)
        for name, aliases in _ALIASES.items()
        if any(alias in plain for alias in aliases)
    }
    return renamed if "start" in renamed else {}


def _parse_segment_list(value: object, mode: Mode, space: BoxSpace) -> Segments | Unparsed:
    if not isinstance(value, list):
        return Unparsed.of(UnparsedReason.MALFORMED, str(value)[:200])
    if len(value) > MAX_SEGMENTS:
        return Unparsed.of(UnparsedReason.OUT_OF_RANGE, f"{len(value)} segments")
    segments: list[LocatedSegment] = []
    problems: list[Unparsed] = []
    for item in value:
        try:
            segments.append(_parse_segment(item, mode, space))
        except UnreadableSegmentError as error:
            problems.append(error.unparsed)
    if problems and (mode == "strict" or not segments):
        return problems[0]
    return tuple(segments)


def _parse_segment(item: object, mode: Mode, space: BoxSpace) -> LocatedSegment:
    if mode == "lenient" and isinstance(item, list) and len(item) == _PAIR:
        item = {"start": item[0], "end": item[1]}
    if not isinstance(item, dict) or (mode == "strict" and not _NAMES.issuperset(item)):
        raise UnreadableSegmentError(UnparsedReason.MALFORMED, item)
    parts = _rename_segment_keys(item) if mode == "lenient" else item
    span = build_segment_span(
        _parse_time_us(parts.get("start"), mode), _parse_time_us(parts.get("end"), mode), item
    )
    readers = {
        "boxes": lambda value: _parse_boxes(value, mode, space, span),
        "category": _parse_categories,
        "confidence": lambda value: _parse_confidence(value, mode),
        "reason": _parse_reason,
    }
    parsed: dict[str, Any] = {}
    for name, reader in readers.items():
        if parts.get(name) is None:
            continue
        try:
            parsed[name] = reader(parts[name])
        except UnreadableSegmentError:
            if mode == "strict":
                raise
    trace = Trace(
        span=span,
        track=parsed.get("boxes", ()),
        categories=parsed.get("category", frozenset()),
        explanation=parsed.get("reason", ""),
    )
    return LocatedSegment(trace, parsed.get("confidence"))


def build_segment_span(start_us: int, end_us: int, source: object) -> TimeSpan:
    """Return the span of a segment.

    Raises:
        UnreadableSegmentError: The segment does not end after its start, or its end is too large.
    """
    try:
        span = TimeSpan(start_us, end_us)
    except InvalidValueError:
        raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, source) from None
    if span.end_us > MAX_SECONDS * MICROSECONDS:
        raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, source)
    return span


def _require_number(value: object) -> float:
    if type(value) not in {int, float}:
        reason = UnparsedReason.MISSING if value is None else UnparsedReason.MALFORMED
        raise UnreadableSegmentError(reason, value)
    number: Any = value
    if not -MAX_SECONDS <= number <= MAX_SECONDS:  # also for NaN and infinity
        raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, str(number)[:40])
    return float(number)


def _parse_time_us(value: object, mode: Mode) -> int:
    if mode == "lenient" and isinstance(value, str):
        onset = parse_trace_onset(value, mode)
        if isinstance(onset, Unparsed):
            raise UnreadableSegmentError(onset.reason, value)
        value = onset / MICROSECONDS
    return convert_to_microseconds(_require_number(value))


def _parse_boxes(value: object, mode: Mode, space: BoxSpace, span: TimeSpan) -> tuple[BoxAt, ...]:
    if mode == "lenient":
        value = _normalise_boxes(value, span)
    if not isinstance(value, list) or len(value) > MAX_BOXES:
        raise UnreadableSegmentError(UnparsedReason.MALFORMED, value)
    track: dict[int, BoxAt] = {}
    for item in value:
        try:
            if not isinstance(item, dict):
                raise UnreadableSegmentError(UnparsedReason.MALFORMED, item)
            at_us = _parse_time_us(item.get("time"), mode)
            if not span.start_us <= at_us < span.end_us:
                raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, item)
            corners = item.get("box")
            if not isinstance(corners, list) or len(corners) != _CORNERS:
                raise UnreadableSegmentError(UnparsedReason.MALFORMED, corners)
            mark = BoxAt(
                at_us, build_segment_box([_require_number(corner) for corner in corners], space)
            )
        except UnreadableSegmentError:
            if mode == "strict":
                raise
            continue
        if mark.at_us not in track:
            track[mark.at_us] = mark
        elif mode == "strict":
            raise UnreadableSegmentError(UnparsedReason.AMBIGUOUS, item)
    return tuple(track[at_us] for at_us in sorted(track))


def _normalise_boxes(value: object, span: TimeSpan) -> object:
    """Convert boxes to objects with `time`, the segment's start if missing, and `box`."""
    if isinstance(value, dict):
        value = [value]
    if isinstance(value, list) and len(value) == _CORNERS and not isinstance(value[0], list | dict):
        value = [value]
    if not isinstance(value, list):
        return value
    start = span.start_us / MICROSECONDS
    boxes: list[object] = []
    for box in value:
        if isinstance(box, dict):
            at = next((box[name] for name in _ALIASES["time"] if name in box), start)
            corners = next((box[name] for name in _ALIASES["boxes"] if name in box), None)
            boxes.append({"time": at, "box": corners})
        else:
            boxes.append({"time": start, "box": box} if isinstance(box, list) else box)
    return boxes


def build_segment_box(corners: Sequence[float], space: BoxSpace) -> Any:
    """Return the clipped box of corners in `space`; raise `UnreadableSegmentError` without area."""
    box = space.box([Fraction(corner) for corner in corners])
    if box is None:
        raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, corners)
    return box


def _parse_categories(value: object) -> frozenset[Category]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableSegmentError(UnparsedReason.MALFORMED, value)
    return frozenset(map(parse_segment_category, names))


def parse_segment_category(name: str, names: Mapping[str, Category] | None = None) -> Category:
    """Return the trace category called `name`; letter case, spaces and hyphens make no difference.

    `names` replaces the names of unreel, and is matched exactly. Raise `UnreadableSegmentError` if no
    category has that name.
    """
    try:
        if names:
            return names[name]
        return Category(re.sub(r"[\s_-]+", "-", name.strip().lower()))
    except (KeyError, ValueError):
        raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, name) from None


def _parse_confidence(value: object, mode: Mode) -> float:
    percent = mode == "lenient" and isinstance(value, str) and value.strip().endswith("%")
    if percent:
        try:
            value = float(str(value).strip()[:-1]) / 100
        except ValueError:
            raise UnreadableSegmentError(UnparsedReason.MALFORMED, value) from None
    number = _require_number(value)
    if not 0 <= number <= 1 or math.isnan(number):
        raise UnreadableSegmentError(UnparsedReason.OUT_OF_RANGE, value)
    return number


def _parse_reason(value: object) -> str:
    if not isinstance(value, str):
        raise UnreadableSegmentError(UnparsedReason.MALFORMED, value)
    return value.strip()


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
_OPENS = "<type>"


def parse_tagged_segments(
    text: str, mode: Mode, space: BoxSpace, *, categories: Mapping[str, Category] | None = None
) -> Segments | Unparsed:
    """Parse the tagged segments of an answer, which may be in the thoughts, and the label after them.

    `categories` are the category names of another owner, which become explanations.

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
        return Unparsed.of(reason if labels else UnparsedReason.MISSING, " ".join(sorted(labels)))
    source = body if _OPENS in body else text
    segments: list[LocatedSegment] = []
    problems: list[Unparsed] = []
    pattern = _STRICT if mode == "strict" else _LENIENT
    for number, tags in enumerate(pattern.finditer(source)):
        if number >= MAX_SEGMENTS:
            return Unparsed.of(UnparsedReason.OUT_OF_RANGE, f"more than {MAX_SEGMENTS} segments")
        try:
            name, times, corners = tags.groups()
            seconds = [float(number) for number in times.split(",")]
            if len(seconds) != _TIMES:
                raise UnreadableSegmentError(UnparsedReason.MALFORMED, times)
            span = build_segment_span(
                convert_to_microseconds(seconds[0]), convert_to_microseconds(seconds[1]), times
            )
            kinds: frozenset[Category] = frozenset()
            track: tuple[BoxAt, ...] = ()
            try:
                kinds = frozenset({parse_segment_category(name, categories)})
            except UnreadableSegmentError:
                if mode == "strict":
                    raise
            try:
                numbers = [float(n) for n in corners.split(",")] if corners else []
                if corners and len(numbers) != _CORNERS:
                    raise UnreadableSegmentError(UnparsedReason.MALFORMED, corners)
                if corners:
                    track = (BoxAt(span.start_us, build_segment_box(numbers, space)),)
            except UnreadableSegmentError:
                if mode == "strict":
                    raise
            explanation = name if categories else ""
            trace = Trace(span=span, track=track, categories=kinds, explanation=explanation)
            segments.append(LocatedSegment(trace))
        except UnreadableSegmentError as error:
            problems.append(error.unparsed)
    if mode == "strict" and source.count(_OPENS) > len(segments) + len(problems):
        problems.append(Unparsed.of(UnparsedReason.MALFORMED, source[source.find(_OPENS) :][:200]))
    if problems and (mode == "strict" or not segments):
        return problems[0]
    return tuple(segments) if segments else Unparsed(UnparsedReason.MISSING)


def parse_locate_answer(text: str, context: AnswerContext) -> LocateVerdict:
    """Parse the segments in an answer: JSON or tags, as `context.prompt` requests.

    `lenient` accepts either format. Times are seconds from the start of the clip. A segment that
    ends before it starts, a number too large for any clip and a box without area are out of range;
    NaN and infinity are not numbers. Boxes are in `context.space` and are clipped to the frame.
    Raise `InvalidValueError` if `context.space` is missing.
    """
    space = context.space
    if space is None:
        raise InvalidValueError(
            "the boxes of a segment need their space. Declare it: AnswerContext(space=parse_box_space(...))"
        )
    body = strip_thinking(text)

    def read(style: str, mode: Mode) -> Segments | Unparsed:
        if style == "tagged":
            return parse_tagged_segments(text, mode, space)
        return parse_json_segments(body, mode, space)

    styles = ["tagged", "json"] if context.prompt in TAGGED_PROMPTS else ["json", "tagged"]
    attempts = [read(styles[0], "strict")]
    if context.mode == "lenient":
        attempts += [read(style, "lenient") for style in styles]
    return LocateVerdict(segments=choose_first_parsed(attempts))
