"""Everyone's marks on one timeline, as the player takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from unreel.annotation.campaign import ClipCopy
from unreel.annotation.consensus.outcome import SettledTask
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.opinion import answer_of
from unreel.annotation.page.disputes import TaskDispute
from unreel.core.trace import Trace
from unreel.pages.player import BoxSpec, PlayerSpec, TraceSpec, TrackSpec

COLOURS: Final = 6
"""That the player tells apart; after those it begins again."""
_MOST_INSTANTS: Final = 1800
"""A page holds many clips: of a longer one, the player steps by time and not by frame."""


def players(dispute: TaskDispute, sources: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the player data for each clip of the task that is stored with the page."""
    return [
        asdict(_player(dispute, copy, name, sources[copy.clip]))
        for copy, name in zip(dispute.task.copies, dispute.task.names, strict=True)
        if copy.clip in sources
    ]


def _player(dispute: TaskDispute, copy: ClipCopy, name: str, source: str) -> PlayerSpec:
    tracks = tuple(_tracks(dispute)) if len(dispute.task.copies) == 1 else ()
    starts = [trace.start_us for track in tracks for trace in track.traces]
    frames = range(copy.n_frames) if copy.n_frames <= _MOST_INSTANTS else ()
    return PlayerSpec(
        src=source,
        width=copy.width,
        height=copy.height,
        duration_us=copy.duration_us,
        first_us=0,
        instants=tuple(copy.at_us(frame) for frame in frames),
        shown_us=(),
        tracks=tracks,
        title=name,
        opens_us=min((start for start in starts if start is not None), default=None),
    )


def _tracks(dispute: TaskDispute) -> Iterator[TrackSpec]:
    """Yield the ground truth or consensus, then all annotators by name, in the order of the player's colours."""
    if dispute.task.known is not None:
        yield _track("known answer", dispute.task.known, kind="truth")
    if isinstance(dispute.outcome, SettledTask):
        yield _track("settled", dispute.outcome.value, kind="truth")
    for opinion in dispute.said:
        yield _track(opinion.annotator, opinion.value, kind="answer")


def _track(name: str, value: AnyValue, *, kind: str) -> TrackSpec:
    traces = value.traces if isinstance(value, TraceAnswer) else ()
    return TrackSpec(
        name=name,
        kind="truth" if kind == "truth" else "answer",
        traces=tuple(map(_trace, traces)),
        note=answer_of(value).replace("-", " "),
    )


def _trace(trace: Trace) -> TraceSpec:
    kinds = ", ".join(sorted(category.value for category in trace.categories))
    return TraceSpec(
        start_us=trace.span.start_us,
        end_us=trace.span.end_us,
        boxes=tuple(map(BoxSpec.of, trace.track)),
        label=kinds or "fault",
        text=trace.explanation,
    )
