"""Stills of reported faults: pictures of the whole frame and of a crop, to print and to mail."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS, convert_to_microseconds, format_seconds
from unreel.media.decode import Rgb
from unreel.media.overlay import (
    OverlayTrace,
    add_caption_panel,
    draw_box_outline,
    get_palette_colour,
)
from unreel.media.picture import encode_jpeg, encode_png, scale_down_picture
from unreel.media.reader import MediaReader, SampledFrame
from unreel.pages.playable_clip import build_data_uri
from unreel.pages.player import PlayerTrackSpec, iter_overlay_marks, iter_track_colours

_AROUND: Final = 0.5
"""Margin on each side, as a fraction of the box's width and height."""
_LEAST_SIDE: Final = 64
_WANTED_SIDE: Final = 480
_MOST_TIMES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutline:
    """Outline of a fault on one frame: its box, colour and line style."""

    box: Box
    colour: int = 0
    dashed: bool = False


def draw_fault_frame(rgb: Rgb, spot: FaultOutline | None, sentences: Sequence[str]) -> Rgb:
    """Draw the outline of `spot` on the complete frame, above a caption with `sentences`."""
    drawn = rgb.copy()
    if spot is not None:
        draw_box_outline(drawn, spot.box, get_palette_colour(spot.colour), dashed=spot.dashed)
    return add_caption_panel(drawn, sentences)


def draw_fault_crop(rgb: Rgb, spot: FaultOutline, sentences: Sequence[str]) -> Rgb:
    """Draw the region around the outline `spot` above `sentences`; small regions are enlarged."""
    height, width, _ = rgb.shape
    left, right = _compute_crop_range(spot.box.x0, spot.box.x1, width)
    top, bottom = _compute_crop_range(spot.box.y0, spot.box.y1, height)
    factor = min(_MOST_TIMES, max(1, _WANTED_SIDE // max(right - left, bottom - top)))
    drawn = rgb[top:bottom, left:right].repeat(factor, axis=0).repeat(factor, axis=1)
    (x0, x1), (y0, y1) = (
        _convert_to_crop_fractions(spot.box.x0, spot.box.x1, side=width, crop=(left, right)),
        _convert_to_crop_fractions(spot.box.y0, spot.box.y1, side=height, crop=(top, bottom)),
    )
    draw_box_outline(
        drawn, Box(x0, y0, x1, y1), get_palette_colour(spot.colour), dashed=spot.dashed
    )
    enlarged = "" if factor == 1 else f", each pixel shown {factor} x {factor} times"
    note = f"Cut out of {width} x {height}: {left} to {right} across, {top} to {bottom} down{enlarged}."
    return add_caption_panel(drawn, [*sentences, note])


def _compute_crop_range(low: float, high: float, side: int) -> tuple[int, int]:
    """Return the pixel range of the crop in one dimension: the box with a margin, inside the frame."""
    min_margin = max(0.0, (_LEAST_SIDE / side - (high - low)) / 2)
    margin = max(_AROUND * (high - low), min_margin)
    return max(0, int((low - margin) * side)), min(side, int((high + margin) * side) + 1)


def _convert_to_crop_fractions(
    low: float, high: float, *, side: int, crop: tuple[int, int]
) -> tuple[float, float]:
    """Convert a range from fractions of the picture to fractions of the crop."""
    first, end = crop
    parts = ((edge * side - first) / (end - first) for edge in (low, high))
    start, stop = (min(1.0, max(0.0, part)) for part in parts)
    return start, stop


FOLDER: Final = "stills"
MOST_STILLS: Final = 12
"""Maximum number of faults of one clip with stills."""

_OURS: Final = re.compile(r"[0-9]{2}-.*\.png")
_PREVIEW_SIDE: Final = 960
_PREVIEW_QUALITY: Final = 80
_HELD_BYTES: Final = 96 << 20
"""Maximum total size of frames in memory."""
_OPINION: Final = "This is a reviewer's opinion, not forensic proof."


@dataclass(frozen=True, slots=True, kw_only=True)
class StillPicture:
    """PNG file of a still, with its hash, its size and a preview."""

    file: str
    """Path of the file, relative to the page."""
    sha256: str
    width: int
    height: int
    preview: bytes = field(repr=False)
    """JPEG preview of the picture."""

    def to_json(self) -> dict[str, Any]:
        """Return the picture's fields, except the preview, as JSON values."""
        return {
            "file": self.file,
            "sha256": self.sha256,
            "width": self.width,
            "height": self.height,
        }

    def as_row(self) -> dict[str, Any]:
        """Return the picture as a dictionary for the page's template."""
        return self.to_json() | {"uri": build_data_uri(self.preview, "image/jpeg")}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFault:
    """A fault that a reviewer or annotator marked, with its onset and its box."""

    reviewer: str
    kind: Literal["truth", "answer"]
    category: str
    """Category of the fault; "" if unknown, because reviewers answer in free text."""
    text: str
    start_us: int | None
    """Onset of the fault; if it is `None`, the first frame is shown."""
    box: Box | None
    spot: FaultOutline | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultStill:
    """Still pictures of one fault, or the failure to make them."""

    fault: MarkedFault
    source_sha256: str
    frame: int | None = None
    """Number of the frame, counted from 0."""
    at_us: int | None = None
    """Time at which that frame appears."""
    whole: StillPicture | None = None
    crop: StillPicture | None = None
    """Crop around the box of the fault; `None` if no box was marked."""
    failure: Failure | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the still as JSON for the result file of a review."""
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
        """Return the still as a dictionary for the page's template."""
        return {
            "fault": self.fault,
            "at": None if self.at_us is None else format_seconds(self.at_us),
            "frame": self.frame,
            "whole": None if self.whole is None else self.whole.as_row(),
            "crop": None if self.crop is None else self.crop.as_row(),
            "failure": None if self.failure is None else str(self.failure),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipFaultStills:
    """Stills of the faults of one clip, and the number of faults without stills."""

    stills: tuple[FaultStill, ...] = ()
    left_out: int = 0
    """Number of faults beyond `MOST_STILLS`, which have no stills."""

    def to_json(self) -> dict[str, Any]:
        """Return the stills as JSON for the result file of a review."""
        return {"stills": [still.to_json() for still in self.stills], "left_out": self.left_out}

    def as_rows(self) -> dict[str, Any]:
        """Return the stills as dictionaries for the page's template."""
        return {"stills": [still.as_row() for still in self.stills], "left_out": self.left_out}


def remove_old_stills(out: OutputDirectory) -> None:
    """Remove the stills of an earlier review from the folder."""
    for name in out.files(FOLDER):
        if _OURS.fullmatch(name):
            out.remove(f"{FOLDER}/{name}")


def write_fault_stills(
    clip: Clip,
    tracks: Sequence[PlayerTrackSpec],
    out: Path,
    *,
    reader: MediaReader,
    duration_us: int,
) -> ClipFaultStills:
    """Write stills into `out`/stills: a frame of each fault, and a crop if the fault has a box."""
    faults = list(iter_marked_faults(tracks, duration_us=duration_us))
    selected, folder = faults[:MOST_STILLS], OutputDirectory(out, published=True)
    stills: list[FaultStill] = []
    width, height = clip.size
    batch_size = max(1, _HELD_BYTES // (3 * width * height))
    for start in range(0, len(selected), batch_size):
        batch = selected[start : start + batch_size]
        frames = reader.frames_at(clip.location, [fault.start_us or 0 for fault in batch])
        for number, fault in enumerate(batch, start=start + 1):
            if isinstance(frames, Failure):
                stills.append(FaultStill(fault=fault, source_sha256=clip.id, failure=frames))
                continue
            at_us = fault.start_us or 0
            # Half a microsecond of tolerance, because the time of a frame is rounded.
            frame = [f for f in frames.frames if f.at_s * MICROSECONDS <= at_us + 0.5][-1]
            stills.append(_write_still(clip, fault, frame, folder, number=number))
    return ClipFaultStills(stills=tuple(stills), left_out=len(faults) - len(selected))


def iter_marked_faults(
    tracks: Sequence[PlayerTrackSpec], *, duration_us: int
) -> Iterator[MarkedFault]:
    """Yield the faults on all tracks of the player, track by track."""
    for track, colour in zip(tracks, iter_track_colours(tracks), strict=True):
        marks = iter_overlay_marks(track, duration_us=duration_us)
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


def _build_fault_spot(box: Box | None, mark: OverlayTrace, colour: int) -> FaultOutline | None:
    return None if box is None else FaultOutline(box=box, colour=colour, dashed=not mark.ends)


def _write_still(
    clip: Clip, fault: MarkedFault, frame: SampledFrame, folder: OutputDirectory, *, number: int
) -> FaultStill:
    at_us = convert_to_microseconds(frame.at_s)
    name = f"{FOLDER}/{number:02d}-{make_safe_file_name(fault.reviewer)[:60]}-frame-{frame.index}"
    caption = _format_still_caption(clip, fault, at_us=at_us, frame=frame.index)
    rgb = frame.rgb()
    whole = _write_picture(folder, f"{name}.png", draw_fault_frame(rgb, fault.spot, caption))
    crop = None
    if fault.spot is not None:
        crop = _write_picture(folder, f"{name}-crop.png", draw_fault_crop(rgb, fault.spot, caption))
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
    onset = "" if fault.start_us is not None else " No time was given: this is the first frame."
    frame_text = f"frame {frame} (the first is 0) of {sanitise_line(Path(clip.location).name)}"
    return [
        f"{fault.reviewer}: {fault.text}",
        f"{format_seconds(at_us)}, {frame_text}.{category}{onset}",
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
        preview=encode_jpeg(scale_down_picture(rgb, _PREVIEW_SIDE), quality=_PREVIEW_QUALITY),
    )
