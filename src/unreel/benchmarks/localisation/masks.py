"""Conversion of masks of generated regions, as of FakeParts and BrokenVideos, to traces with boxes.

A mask is a video as long as its clip, bright where the clip is generated. It has the name of the clip, in the
folder `masks` next to the folder `videos`; a clip without a mask is real.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected, Row
from unreel.benchmarks.folder_layout import walk_videos
from unreel.benchmarks.table_entries import UNKNOWN_CREATOR
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Trace

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader

VIDEOS = "videos"
MASKS = "masks"
PLAN = "fps-10"
"""Sampling plan of a mask, so that segments are exact to a tenth of a second."""
_SIDE = 256
_BRIGHT = 128

MaskPixels = npt.NDArray[np.bool_]


def convert_masks_to_traces(
    masks: Iterable[tuple[int, MaskPixels]], end_us: int
) -> tuple[Trace, ...]:
    """Return one trace per run of masks with a set pixel, with the box around the pixels at each time."""
    runs: list[tuple[list[BoxAt], int]] = []
    open_run: list[BoxAt] = []
    for at_us, mask in masks:
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if len(rows):
            height, width = mask.shape
            x0, x1 = float(columns[0] / width), float((columns[-1] + 1) / width)
            y0, y1 = float(rows[0] / height), float((rows[-1] + 1) / height)
            open_run.append(BoxAt(at_us, Box(x0, y0, x1, y1)))
        elif open_run:
            runs.append((open_run, at_us))
            open_run = []
    if open_run:
        runs.append((open_run, end_us))
    return tuple(
        Trace(span=TimeSpan(track[0].at_us, end), track=tuple(track)) for track, end in runs
    )


def read_masked_clips(root: Path, reader: "MediaReader") -> Iterator[Row]:
    """Yield a benchmark entry for each video below `videos`, with the traces of its mask video.

    Raise `UnreadableSourceError` if the folder `videos` or `masks` is missing.
    """
    if not ((root / VIDEOS).is_dir() and (root / MASKS).is_dir()):
        raise UnreadableSourceError(
            str(root),
            f"no folders {VIDEOS}/ and {MASKS}/",
            "Put clips and masks with the same names into them",
        )
    masks = {Path(mask).stem: mask for mask in walk_videos(root, MASKS) if isinstance(mask, str)}
    for video in walk_videos(root, VIDEOS):
        if isinstance(video, Rejected):
            yield video
            continue
        yield _read_masked_clip(root, video, masks.get(Path(video).stem), reader)


def _read_masked_clip(root: Path, video: str, mask: str | None, reader: "MediaReader") -> Row:
    facts = reader.probe(root / video)
    if isinstance(facts, Failure):
        return Rejected(video, str(facts))
    duration_us = convert_to_microseconds(facts.video.duration_s)
    traces: tuple[Trace, ...] = ()
    if mask is not None:
        frames = reader.frames(root / mask, sampling=PLAN, encoding="rgb24", longest_side=_SIDE)
        if isinstance(frames, Failure):
            return Rejected(mask, str(frames))
        masks = [
            (convert_to_microseconds(frame.at_s), frame.rgb().max(axis=2) >= _BRIGHT)
            for frame in frames.frames
        ]
        if masks[-1][0] >= duration_us:
            return Rejected(
                mask, "the mask is longer than its clip. Check that they belong together"
            )
        traces = convert_masks_to_traces(masks, duration_us)
    return Entry(
        name=video,
        location=video,
        origin=Generated(UNKNOWN_CREATOR) if traces else Real(),
        traces=traces,
        facts=DeclaredFacts(
            width=facts.video.width, height=facts.video.height, duration_us=duration_us
        ),
    )
