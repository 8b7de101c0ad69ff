"""Texts of the protocol `locate`: verdicts for display, and answers as the requested JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from unreel.core.errors import InvalidValueError
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS, format_seconds
from unreel.core.verdict import LocatedSegment, LocateVerdict, Unparsed
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.protocol import EVEN, ProtocolTexts

UNIT = BoxSpace("unit", 1, 1)


def format_segments_json(segments: Iterable[LocatedSegment], space: BoxSpace = UNIT) -> str:
    """Format segments as an answer of `locate`: the requested JSON, with boxes in units of `space`."""
    return json.dumps(
        [_build_segment_document(segment, space) for segment in segments], ensure_ascii=False
    )


def _build_segment_document(segment: LocatedSegment, space: BoxSpace) -> dict[str, Any]:
    trace = segment.trace
    parts: dict[str, Any] = {
        "start": trace.span.start_us / MICROSECONDS,
        "end": trace.span.end_us / MICROSECONDS,
        "boxes": [
            {"time": mark.at_us / MICROSECONDS, "box": list(space.corners(mark.box))}
            for mark in trace.track
        ],
        "category": sorted(trace.categories),
        "confidence": segment.confidence,
        "reason": trace.explanation,
    }
    return {name: part for name, part in parts.items() if part not in ([], None, "")}


def _format_correct_answer(truth: LocateTruth) -> str:
    return format_segments_json(map(LocatedSegment, truth.traces))


def _format_training_answer(truth: LocateTruth, _prompt: str, space: BoxSpace | None) -> str:
    """Return the training answer for a clip: annotated segments, without a confidence."""
    if space is None:
        raise InvalidValueError(
            "a box is taught in units. Declare their space, for example permille"
        )
    return format_segments_json(map(LocatedSegment, truth.traces), space)


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    """Return an answer for a probability, which has no times: a generated clip's first second."""
    is_generated = p_generated[0] > EVEN
    if prompt == "tagged":
        if is_generated:
            return "<type>other</type> in <t>[0, 1]</t> <answer>Fake</answer>"
        return "<answer>Real</answer>"
    return f'[{{"start": 0, "end": 1, "confidence": {p_generated[0]}}}]' if is_generated else "[]"


def _iter_verdict_details(verdict: LocateVerdict) -> Iterator[tuple[str, str]]:
    if isinstance(verdict.segments, Unparsed):
        return
    for number, segment in enumerate(verdict.segments, start=1):
        yield f"segment {number}", describe_located_segment(segment)


def describe_located_segment(segment: LocatedSegment) -> str:
    """Describe a segment in one line: times, categories, confidence, number of boxes and reason."""
    trace = segment.trace
    parts = [f"{format_seconds(trace.span.start_us)} to {format_seconds(trace.span.end_us)}"]
    parts += sorted(trace.categories)
    if segment.confidence is not None:
        parts.append(f"confidence {segment.confidence:.0%}")
    if trace.track:
        parts.append(f"{len(trace.track)} box{'es' if len(trace.track) > 1 else ''}")
    reason = f": {sanitise_line(trace.explanation)}" if trace.explanation else ""
    return ", ".join(parts) + reason


WORDING: ProtocolTexts[LocateTruth, LocateVerdict] = ProtocolTexts(
    decides="label",
    say=str,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    details=_iter_verdict_details,
    teaches=frozenset({"paper"}),
    write=_format_training_answer,
)
