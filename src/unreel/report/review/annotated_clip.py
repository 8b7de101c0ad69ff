"""Annotated copy: the clip with drawn findings, and each verdict below it."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.span import format_seconds
from unreel.core.verdict import TraceVerdict
from unreel.evaluation.opinion import Opinion
from unreel.evaluation.review import Review
from unreel.media.annotated_copy_wire import OnFrames
from unreel.media.overlay import OverlayCommentary, TimelineLane
from unreel.media.reader import MediaReader
from unreel.pages.player import TrackSpec, moving_marks, track_colours
from unreel.report.review.opinion_text import NO_PROOF, format_stability

ANNOTATED: Final = "annotated.mp4"

_MOST_LANES: Final = 32
_LONGEST: Final = 400


def write_copy(
    review: Review,
    tracks: Sequence[TrackSpec],
    out: Path,
    *,
    reader: MediaReader,
    duration_us: int,
    on_frames: OnFrames,
) -> Path | Failure:
    """Write the annotated copy of `review` into the folder `out`: whole, or not at all."""
    commentary = build_drawings(review, tracks, duration_us=duration_us)
    try:
        with OutputDirectory(out, published=True).create(ANNOTATED) as file:
            made = reader.annotate(review.clip.location, commentary, into=file, on_frames=on_frames)
            _require_success(made)
    except MediaError as error:
        return _name_limit(error.failure)
    return out / ANNOTATED


def _name_limit(failure: Failure) -> Failure:
    if failure.reason is not FailureReason.OUT_OF_TIME:
        return failure
    detail = f"{failure.detail}; UNREEL_ANNOTATE_PACE sets how its time grows with the clip"
    return Failure(failure.reason, detail)


def _require_success(made: object) -> None:
    """End the writing of a file that would not be whole."""
    if isinstance(made, Failure):
        raise MediaError(made)


def build_drawings(
    review: Review, tracks: Sequence[TrackSpec], *, duration_us: int
) -> OverlayCommentary:
    """Return the drawings: one lane for known traces, and one per reviewer."""
    lanes = list(_iter_timeline_lanes(review, tracks, duration_us=duration_us))
    notes = [NO_PROOF]
    if len(lanes) > _MOST_LANES:
        notes.insert(0, f"{len(lanes) - _MOST_LANES} more reviewers are shown on the page only.")
    return OverlayCommentary(
        lanes=tuple(lanes[:_MOST_LANES]), duration_us=duration_us, notes=tuple(notes)
    )


def _iter_timeline_lanes(
    review: Review, tracks: Sequence[TrackSpec], *, duration_us: int
) -> Iterator[TimelineLane]:
    coloured = list(zip(tracks, track_colours(tracks), strict=True))
    for track, colour in coloured:
        if track.kind == "truth":
            labels = "; ".join(dict.fromkeys(trace.label for trace in track.traces))
            marks = tuple(moving_marks(track, duration_us=duration_us))
            yield TimelineLane(says=f"{track.name}: {labels}", colour=colour, marks=marks)
    answered = {track.name: (track, colour) for track, colour in coloured if track.kind != "truth"}
    others = count(len(tracks))
    unsure = {s.opinion.key: format_stability(s) for s in review.stabilities if s.state == "unsure"}
    for reviewer in dict.fromkeys(opinion.reviewer for opinion in review.opinions):
        name = sanitise_line(reviewer)
        own = [opinion for opinion in review.opinions if opinion.reviewer == reviewer]
        doubts = [unsure[opinion.key] for opinion in own if opinion.key in unsure]
        # Verdicts before reasons: what does not fit is cut.
        told = " ".join(
            filter(
                None,
                ["; ".join(map(_format_opinion, own)) + ".", *doubts, *map(_format_reason, own)],
            )
        )
        track, colour = answered.get(name) or (_build_empty_track(name), next(others))
        marks = tuple(moving_marks(track, duration_us=duration_us))
        yield TimelineLane(says=f"{name}: {told}"[:_LONGEST], colour=colour, marks=marks)


def _build_empty_track(name: str) -> TrackSpec:
    return TrackSpec(name=name, kind="answer", traces=())


def _format_opinion(opinion: Opinion) -> str:
    """Return a short text of an opinion."""
    if opinion.problem is not None:
        return f"{opinion.headline} ({opinion.problem})"
    verdict = opinion.verdict
    if not isinstance(verdict, TraceVerdict):
        return f"{opinion.question.instrument.protocol} {opinion.headline}"
    if verdict.label is not Label.GENERATED:
        return opinion.headline
    start = verdict.start_us
    when = f"from {format_seconds(start)}" if isinstance(start, int) else "no instant named"
    return f"{opinion.headline}, {when}"


def _format_reason(opinion: Opinion) -> str:
    verdict = opinion.verdict
    if isinstance(verdict, TraceVerdict) and isinstance(verdict.explanation, str):
        return sanitise_line(verdict.explanation)
    return ""
