"""Stills of reported faults: each as a frame and as a crop, to print and to mail."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.names import plain_name
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS, format_seconds, to_us
from unreel.media.decode import Rgb
from unreel.media.overlay import MovingMark
from unreel.media.picture import encode_jpeg, encode_png, fit_longest
from unreel.media.reader import MediaReader, SampledFrame
from unreel.media.still import FaultSpot, draw_crop, draw_whole
from unreel.pages.playable_clip import data_uri
from unreel.pages.player import TrackSpec, moving_marks, track_colours

FOLDER: Final = "stills"
MOST_STILLS: Final = 12
"""Faults of one clip of which stills are made."""

_OURS: Final = re.compile(r"[0-9]{2}-.*\.png")
_PREVIEW_SIDE: Final = 960
_PREVIEW_QUALITY: Final = 80
_HELD_BYTES: Final = 96 << 20
"""Maximum total size of frames in memory."""
_OPINION: Final = "This is a reviewer's opinion, not forensic proof."


@dataclass(frozen=True, slots=True, kw_only=True)
class StillPicture:
    """One PNG file."""

    file: str
    """Its name from the page."""
    sha256: str
    width: int
    height: int
    preview: bytes = field(repr=False)
    """A small JPEG of it."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields except the preview."""
        return {
            "file": self.file,
            "sha256": self.sha256,
            "width": self.width,
            "height": self.height,
        }

    def as_row(self) -> dict[str, Any]:
        """Return the picture as a row for the template."""
        return self.to_json() | {"uri": data_uri(self.preview, "image/jpeg")}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFault:
    """A marked fault, with the time at which it is shown."""

    reviewer: str
    kind: Literal["truth", "answer"]
    category: str
    """Category of the fault; "" if unknown: reviewers answer in free text."""
    text: str
    start_us: int | None
    """The onset; `None` where none was named, then the first frame is shown."""
    box: Box | None
    spot: FaultSpot | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultStill:
    """A fault in pictures, or why there are none."""

    fault: MarkedFault
    source_sha256: str
    frame: int | None = None
    """Number of the frame, counted from 0."""
    at_us: int | None = None
    """When that frame appears."""
    whole: StillPicture | None = None
    crop: StillPicture | None = None
    """`None` where no place was marked."""
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of a review's result."""
        fault = self.fault
        return {
            "reviewer": fault.reviewer,
            "kind": fault.kind,
            "category": fault.category or None,
            "text": fault.text,
            "start_us": fault.start_us,
            "box": None if fault.box is None else asdict(fault.box),
            "source_sha256": self.source_sha256,
            "frame": self.frame,
            "at_us": self.at_us,
            "at_s": None if self.at_us is None else self.at_us / MICROSECONDS,
            "whole": None if self.whole is None else self.whole.to_json(),
            "crop": None if self.crop is None else self.crop.to_json(),
            "failure": None if self.failure is None else asdict(self.failure),
        }

    def as_row(self) -> dict[str, Any]:
        """Return the still as a row for the template."""
        return {
            "fault": self.fault,
            "at": None if self.at_us is None else format_seconds(self.at_us),
            "frame": self.frame,
            "whole": None if self.whole is None else self.whole.as_row(),
            "crop": None if self.crop is None else self.crop.as_row(),
            "failure": None if self.failure is None else str(self.failure),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipStills:
    """The stills of one clip."""

    stills: tuple[FaultStill, ...] = ()
    left_out: int = 0
    """Faults beyond `MOST_STILLS`."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of a review's result."""
        return {"stills": [still.to_json() for still in self.stills], "left_out": self.left_out}

    def as_rows(self) -> dict[str, Any]:
        """Return the stills as rows for the template."""
        return {"stills": [still.as_row() for still in self.stills], "left_out": self.left_out}


def clear_stills(out: OutputDirectory) -> None:
    """Take away what an earlier review left there."""
    for name in out.files(FOLDER):
        if _OURS.fullmatch(name):
            out.remove(f"{FOLDER}/{name}")


def write_stills(
    clip: Clip, tracks: Sequence[TrackSpec], out: Path, *, reader: MediaReader, duration_us: int
) -> ClipStills:
    """Write a frame, and where a place was marked a cut-out, of each fault into `out`/stills."""
    faults = list(find_faults(tracks, duration_us=duration_us))
    shown, folder = faults[:MOST_STILLS], OutputDirectory(out, published=True)
    stills: list[FaultStill] = []
    width, height = clip.size
    at_once = max(1, _HELD_BYTES // (3 * width * height))
    for first in range(0, len(shown), at_once):
        some = shown[first : first + at_once]
        frames = reader.frames_at(clip.location, [fault.start_us or 0 for fault in some])
        for place, fault in enumerate(some, start=first + 1):
            if isinstance(frames, Failure):
                stills.append(FaultStill(fault=fault, source_sha256=clip.id, failure=frames))
                continue
            at_us = fault.start_us or 0
            # Half a microsecond: the instant of a frame is rounded.
            frame = [f for f in frames.frames if f.at_s * MICROSECONDS <= at_us + 0.5][-1]
            stills.append(_write_still(clip, fault, frame, folder, place=place))
    return ClipStills(stills=tuple(stills), left_out=len(faults) - len(shown))


def find_faults(tracks: Sequence[TrackSpec], *, duration_us: int) -> Iterator[MarkedFault]:
    """Yield all marked faults, track by track."""
    for track, colour in zip(tracks, track_colours(tracks), strict=True):
        marks = moving_marks(track, duration_us=duration_us)
        for trace, mark in zip(track.traces, marks, strict=True):
            box = mark.box_at(mark.span.start_us)
            yield MarkedFault(
                reviewer=track.name,
                kind=track.kind,
                category=trace.label if track.kind == "truth" else "",
                text=trace.text or trace.label,
                start_us=trace.start_us,
                box=box,
                spot=_build_fault_spot(box, mark, colour),
            )


def _build_fault_spot(box: Box | None, mark: MovingMark, colour: int) -> FaultSpot | None:
    return None if box is None else FaultSpot(box=box, colour=colour, dashed=not mark.ends)


def _write_still(
    clip: Clip, fault: MarkedFault, frame: SampledFrame, folder: OutputDirectory, *, place: int
) -> FaultStill:
    at_us = to_us(frame.at_s)
    name = f"{FOLDER}/{place:02d}-{plain_name(fault.reviewer)[:60]}-frame-{frame.index}"
    told = _format_still_caption(clip, fault, at_us=at_us, frame=frame.index)
    rgb = frame.rgb()
    whole = _write_picture(folder, f"{name}.png", draw_whole(rgb, fault.spot, told))
    crop = None
    if fault.spot is not None:
        crop = _write_picture(folder, f"{name}-crop.png", draw_crop(rgb, fault.spot, told))
    return FaultStill(
        fault=fault,
        source_sha256=clip.id,
        frame=frame.index,
        at_us=at_us,
        whole=whole,
        crop=crop,
    )


def _format_still_caption(clip: Clip, fault: MarkedFault, *, at_us: int, frame: int) -> list[str]:
    category = f" Kind of fault: {fault.category}." if fault.category else ""
    onset = "" if fault.start_us is not None else " No instant was named: this is the first frame."
    place = f"frame {frame} (the first is 0) of {sanitise_line(Path(clip.location).name)}"
    return [
        f"{fault.reviewer}: {fault.text}",
        f"{format_seconds(at_us)}, {place}.{category}{onset}",
        f"SHA-256 of the file: {clip.id}",
        *([_OPINION] if fault.kind == "answer" else []),
    ]


def _write_picture(folder: OutputDirectory, name: str, rgb: Rgb) -> StillPicture:
    data = encode_png(rgb)
    folder.write(name, data)
    height, width, _ = rgb.shape
    return StillPicture(
        file=name,
        sha256=hashlib.sha256(data).hexdigest(),
        width=width,
        height=height,
        preview=encode_jpeg(fit_longest(rgb, _PREVIEW_SIDE), quality=_PREVIEW_QUALITY),
    )
