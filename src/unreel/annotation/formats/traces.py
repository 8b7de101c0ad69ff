"""Traces of our own from another tool's tracks: `metadata.jsonl` as a benchmark has it.

A trace has one span, so a track with gaps becomes several traces. Times are those of the frames, exactly;
where a trace's categories cannot be read from the words of the file, its words become the explanation.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from unreel.annotation.campaign import ClipCopy
from unreel.annotation.formats.document import ForeignTrack, ForeignVideo
from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected
from unreel.benchmarks.records import LABELS, UNKNOWN_CREATOR, to_record
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError
from unreel.core.identity import digest_id
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.writing import OutputDirectory

FILE: Final = "metadata.jsonl"
MASKS: Final = "masks.jsonl"
"""Where masks lie that traces were drawn from: a trace itself has no place for them."""
EXPLANATION: Final = "explanation"
_CATEGORIES: Final = {category.value: category for category in Category}


def write_traces(videos: Iterable[ForeignVideo], folder: OutputDirectory) -> Iterator[Rejected]:
    """Write `metadata.jsonl`, a line for each video, and `masks.jsonl` where masks are referred to."""
    masks: list[dict[str, Any]] = []
    with folder.create_text(FILE) as file:
        for video in videos:
            try:
                entry = _entry(video)
            except InvalidValueError as error:
                yield Rejected(video.name, str(error))
                continue
            file.write(json.dumps(to_record(entry, file_name=video.name)) + "\n")
            masks += _masks(video)
    if masks:
        folder.write(MASKS, "".join(json.dumps(mask) + "\n" for mask in masks).encode())


def traces_of(video: ForeignVideo) -> tuple[Trace, ...]:
    """The traces that a video's tracks mark, one for each stretch.

    Raises:
        InvalidValueError: The file does not say how fast or how long the video is.
    """
    clock = clock_of(video)
    return tuple(
        Trace(
            span=TimeSpan(clock.at_us(stretch.first), clock.at_us(stretch.last + 1)),
            track=tuple(
                BoxAt(clock.at_us(mark.frame), mark.box)
                for mark in track.marks_in(stretch)
                if mark.box is not None
            ),
            categories=frozenset(_categories(track)),
            explanation=_explanation(track),
        )
        for track in video.tracks
        for stretch in track.stretches
    )


def _entry(video: ForeignVideo) -> Entry:
    traces = traces_of(video)
    label = _label(video, traces)
    facts = DeclaredFacts(
        width=video.width, height=video.height, rate=video.rate, n_frames=video.n_frames
    )
    origin = Generated(UNKNOWN_CREATOR) if label is Label.GENERATED else Real()
    return Entry(
        name=video.name,
        location=video.name,
        origin=origin,
        traces=traces,
        facts=facts,
        source=video.origin,
    )


def _label(video: ForeignVideo, traces: tuple[Trace, ...]) -> Label:
    words = (word.strip().lower() for said in video.said for word in said.answers)
    told = [LABELS[word] for word in words if word in LABELS]
    if traces:
        return Label.GENERATED
    if not told:
        msg = "it has no annotation and no label real. Add the label, or leave it out"
        raise InvalidValueError(msg)
    return told[0]


def clock_of(video: ForeignVideo) -> ClipCopy:
    """The video's frames as a copy has them, which knows each frame's time."""
    last = max((each.last for track in video.tracks for each in track.stretches), default=0)
    return ClipCopy(
        clip=digest_id("foreign", video.name),
        location=video.name,
        rate=video.require_rate(),
        n_frames=max(video.n_frames or 0, last + 1),
        width=video.width or 1,
        height=video.height or 1,
    )


def _categories(track: ForeignTrack) -> Iterator[Category]:
    words = [track.label, *(word for said in track.said for word in said.answers)]
    for word in words:
        plain = re.sub(r"[\s_/-]+", "-", word.strip().lower())
        if plain in _CATEGORIES:
            yield _CATEGORIES[plain]


def _explanation(track: ForeignTrack) -> str:
    """Return the explanation of the track; otherwise the texts that are no category."""
    written = [word for said in track.said if said.question == EXPLANATION for word in said.answers]
    written = written or [word for s in track.said if s.written for word in s.answers]
    if not written and not list(_categories(track)):
        written = [track.label]
    return "\n".join(written).strip()


def _masks(video: ForeignVideo) -> Iterator[dict[str, Any]]:
    clock = clock_of(video)
    for track in video.tracks:
        for mark in track.marks:
            if mark.mask:
                at_us = clock.at_us(mark.frame)
                yield {"name": video.name, "track": track.id, "at_us": at_us, "mask": mark.mask}
