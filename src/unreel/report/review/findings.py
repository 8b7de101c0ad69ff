"""Positions and times of findings by reviewer, as tracks of the player."""

from collections.abc import Iterable, Iterator
from typing import Final

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import LocateVerdict, TraceVerdict, Unparsed
from unreel.evaluation.opinion import Opinion
from unreel.pages.player import SHORTEST_US, BoxSpec, TraceSpec, TrackSpec
from unreel.protocols.protocol import get_protocol

_LABEL: Final = 44
_KNOWN: Final = "what is known"


def find_tracks(
    opinions: Iterable[Opinion], truth: tuple[Trace, ...], *, duration_us: int
) -> list[TrackSpec]:
    """Return a track for known faults, if any, and one for each reviewer with `trace`."""
    known = TrackSpec(name=_KNOWN, kind="truth", traces=known_traces(truth))
    answered = [
        TrackSpec(
            name=sanitise_line(opinion.reviewer),
            kind="answer",
            traces=tuple(_iter_reported_traces(opinion, duration_us=duration_us)),
            note=opinion.problem or f"calls it {opinion.headline}",
            failed=opinion.problem is not None,
        )
        for opinion in opinions
        if get_protocol(opinion.question.instrument.protocol).needs_box_space
    ]
    return [known, *answered] if truth else answered


def _iter_reported_traces(opinion: Opinion, *, duration_us: int) -> Iterator[TraceSpec]:
    verdict = opinion.verdict
    if isinstance(verdict, LocateVerdict) and not isinstance(verdict.segments, Unparsed):
        yield from known_traces(segment.trace for segment in verdict.segments)
    if not isinstance(verdict, TraceVerdict) or verdict.label is not Label.GENERATED:
        return
    text = sanitise_lines(verdict.explanation) if isinstance(verdict.explanation, str) else ""
    start_us = None
    if isinstance(verdict.start_us, int):
        # A time past the end is told in words; on the timeline it stands at the end.
        start_us = min(verdict.start_us, max(0, duration_us - SHORTEST_US))
    box = verdict.box
    yield TraceSpec(
        start_us=start_us,
        end_us=None,
        boxes=(BoxSpec.of(BoxAt(start_us or 0, box)),) if isinstance(box, Box) else (),
        label=_shorten_label(text) or "generated",
        text=text,
    )


def known_traces(truth: Iterable[Trace]) -> tuple[TraceSpec, ...]:
    """Return the known faults in the form that the player shows."""
    return tuple(map(_build_annotated_trace, truth))


def _build_annotated_trace(trace: Trace) -> TraceSpec:
    kinds = ", ".join(sorted(kind.value.replace("-", " ") for kind in trace.categories))
    return TraceSpec(
        start_us=trace.span.start_us,
        end_us=trace.span.end_us,
        boxes=tuple(map(BoxSpec.of, trace.track)),
        label=kinds or "a fault",
        text=sanitise_lines(trace.explanation),
    )


def _shorten_label(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "\u2026"
