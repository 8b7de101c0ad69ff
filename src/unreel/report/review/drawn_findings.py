"""Findings of a review for display: tracks of the player, and a copy of the clip with drawings."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

from unreel.core.box import Box
from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.span import format_seconds
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import LocateVerdict, TraceVerdict, Unparsed
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.media.overlay import OverlayCommentary, ReviewerOverlayLane
from unreel.media.reader import MediaReader, OnFrames
from unreel.pages.player import (
    SHORTEST_US,
    PlayerBoxSpec,
    PlayerTraceSpec,
    PlayerTrackSpec,
    iter_overlay_traces,
    iter_track_colours,
)
from unreel.protocols.protocol import get_protocol
from unreel.report.review.opinion_text import NO_PROOF, format_opinion_stability

ANNOTATED = "annotated.mp4"

_MAX_LANES = 32
_LONGEST = 400


def write_annotated_clip(
    review: Review,
    tracks: Sequence[PlayerTrackSpec],
    out: Path,
    *,
    reader: MediaReader,
    duration_us: int,
    on_frames: OnFrames,
) -> Path | Failure:
    """Write a copy of the reviewed clip with drawn findings into `out`; a failure leaves no file."""
    commentary = build_findings_overlay(review, tracks, duration_us=duration_us)
    try:
        with OutputDirectory(out, published=True).create(ANNOTATED) as file:
            copy = reader.annotate(review.clip.location, commentary, into=file, on_frames=on_frames)
            if isinstance(copy, Failure):
                raise MediaError(copy.reason, copy.detail)
    except MediaError as error:
        if error.failure.reason is not FailureReason.OUT_OF_TIME:
            return error.failure
        detail = (
            f"{error.failure.detail}; UNREEL_ANNOTATE_PACE sets how its time grows with the clip"
        )
        return Failure(error.failure.reason, detail)
    return out / ANNOTATED


def build_findings_overlay(
    review: Review, tracks: Sequence[PlayerTrackSpec], *, duration_us: int
) -> OverlayCommentary:
    """Build the drawings over the clip: a timeline lane for known traces, and one per reviewer."""
    coloured = list(zip(tracks, iter_track_colours(tracks), strict=True))
    lanes = []
    for track, colour in coloured:
        if track.kind == "truth":
            labels = "; ".join(dict.fromkeys(trace.label for trace in track.traces))
            traces = tuple(iter_overlay_traces(track, duration_us=duration_us))
            text = f"{track.name}: {labels}"
            lanes.append(ReviewerOverlayLane(text=text, colour=colour, traces=traces))
    answered = {track.name: (track, colour) for track, colour in coloured if track.kind != "truth"}
    colours = count(len(tracks))
    unsure = {
        s.opinion.key: format_opinion_stability(s)
        for s in review.stabilities
        if s.state == "unsure"
    }
    for reviewer in dict.fromkeys(opinion.reviewer for opinion in review.opinions):
        name = sanitise_line(reviewer)
        opinions = [opinion for opinion in review.opinions if opinion.reviewer == reviewer]
        doubts = [unsure[opinion.key] for opinion in opinions if opinion.key in unsure]
        # Verdicts first: text that does not fit is cut.
        texts = ["; ".join(map(_format_opinion, opinions)) + ".", *doubts]
        verdicts = [opinion.verdict for opinion in opinions]
        texts += [
            sanitise_line(verdict.explanation)
            for verdict in verdicts
            if isinstance(verdict, TraceVerdict) and isinstance(verdict.explanation, str)
        ]
        text = " ".join(filter(None, texts))
        track, colour = answered.get(name) or (
            PlayerTrackSpec(name=name, kind="answer", traces=()),
            next(colours),
        )
        traces = tuple(iter_overlay_traces(track, duration_us=duration_us))
        text = f"{name}: {text}"[:_LONGEST]
        lanes.append(ReviewerOverlayLane(text=text, colour=colour, traces=traces))
    notes = [NO_PROOF]
    if len(lanes) > _MAX_LANES:
        notes.insert(0, f"{len(lanes) - _MAX_LANES} more reviewers are shown on the page only.")
    return OverlayCommentary(
        lanes=tuple(lanes[:_MAX_LANES]), duration_us=duration_us, notes=tuple(notes)
    )


def _format_opinion(opinion: Opinion) -> str:
    """Return the verdict of an opinion, with its onset or its problem, as short text."""
    if opinion.problem is not None:
        return f"{opinion.headline} ({opinion.problem})"
    verdict = opinion.verdict
    if not isinstance(verdict, TraceVerdict):
        return f"{opinion.question.instrument.protocol} {opinion.headline}"
    if verdict.label is not Label.GENERATED:
        return opinion.headline
    start = verdict.start_us
    when = f"from {format_seconds(start)}" if isinstance(start, int) else "no time given"
    return f"{opinion.headline}, {when}"


_LABEL = 44
_KNOWN = "ground truth"


def build_finding_tracks(
    opinions: Iterable[Opinion], true_trace: tuple[Trace, ...], *, duration_us: int
) -> list[PlayerTrackSpec]:
    """Build the player's tracks: one for known faults, if any, and one per opinion about traces."""
    known = PlayerTrackSpec(name=_KNOWN, kind="truth", traces=build_known_trace_specs(true_trace))
    answered = [
        PlayerTrackSpec(
            name=sanitise_line(opinion.reviewer),
            kind="answer",
            traces=tuple(_iter_reported_traces(opinion, duration_us=duration_us)),
            note=opinion.problem or f"calls it {opinion.headline}",
            failed=opinion.problem is not None,
        )
        for opinion in opinions
        if get_protocol(opinion.question.instrument.protocol).needs_box_space
    ]
    return [known, *answered] if true_trace else answered


def _iter_reported_traces(opinion: Opinion, *, duration_us: int) -> Iterator[PlayerTraceSpec]:
    verdict = opinion.verdict
    if isinstance(verdict, LocateVerdict) and not isinstance(verdict.segments, Unparsed):
        yield from build_known_trace_specs(segment.trace for segment in verdict.segments)
    if not isinstance(verdict, TraceVerdict) or verdict.label is not Label.GENERATED:
        return
    text, label = "", "generated"
    if isinstance(verdict.explanation, str):
        text = sanitise_lines(verdict.explanation)
        line = " ".join(text.split())
        label = line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "\u2026"
    start_us = None
    if isinstance(verdict.start_us, int):
        # A time past the end is reported as text; on the timeline it is at the end.
        start_us = min(verdict.start_us, max(0, duration_us - SHORTEST_US))
    box = verdict.box
    yield PlayerTraceSpec(
        start_us=start_us,
        end_us=None,
        boxes=(PlayerBoxSpec.of(BoxAt(start_us or 0, box)),) if isinstance(box, Box) else (),
        label=label or "generated",
        text=text,
    )


def build_known_trace_specs(true_trace: Iterable[Trace]) -> tuple[PlayerTraceSpec, ...]:
    """Convert the known faults of a clip to trace specifications of the player."""
    return tuple(
        PlayerTraceSpec(
            start_us=trace.span.start_us,
            end_us=trace.span.end_us,
            boxes=tuple(map(PlayerBoxSpec.of, trace.track)),
            label=", ".join(sorted(kind.value.replace("-", " ") for kind in trace.categories))
            or "a fault",
            text=sanitise_lines(trace.explanation),
        )
        for trace in true_trace
    )
