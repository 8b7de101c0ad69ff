"""Annotations of a video, independent of the file format: object tracks by frame, and answers.

Frames count from 0 here, regardless of a format's own first number. A box is defined at its key
frame, moves linearly to the next one of its range, and stays from the last one to the end of the
range.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.safe_names import make_safe_file_name

MOST_FRAMES: Final = 10_000_000
"""Maximum number of frames of a video: four days at 29.97 frames per second."""
MOST_TRACKS: Final = 10_000
MOST_MARKS: Final = 1_000_000
"""Maximum number of key frames of a track, more than a person can draw."""
MOST_LETTERS: Final = 20_000
"""Maximum number of characters of an answer."""


@dataclass(frozen=True, slots=True)
class KeyFrameBox:
    """Box or mask of a tracked object on one key frame."""

    frame: int
    box: Box | None
    """Bounding box; `None` for a mask whose position is not in the file."""
    mask: str = ""
    """Location of the mask: a URL, or a position in the input file; "" without a mask."""


@dataclass(frozen=True, slots=True, order=True)
class FrameSpan:
    """Range of frames on which an object is visible; both ends are included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last < MOST_FRAMES:
            msg = (
                f"frames {self.first} to {self.last} are no stretch. Give the first, then the last"
            )
            raise InvalidValueError(msg)


@dataclass(frozen=True, slots=True)
class FieldAnswer:
    """Answers to one question of an annotation form, or the text of one of its fields."""

    question: str
    answers: tuple[str, ...]
    written: bool = False
    """Whether the answer is free text instead of a choice; CVAT does not distinguish them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTrack:
    """Normalised annotated object over time, from `build_object_track`: label, ranges, key frames, answers."""

    id: str
    label: str
    stretches: tuple[FrameSpan, ...]
    """Frame ranges in which the object is visible, in order and with gaps between them."""
    marks: tuple[KeyFrameBox, ...] = ()
    """Key frames in order, one at the start of each frame range; empty if only times were annotated."""
    said: tuple[FieldAnswer, ...] = ()

    def box_at(self, frame: int) -> Box | None:
        """Return the box of the object on `frame`; `None` if the object is hidden or has no box."""
        if not self.seen_at(frame) or not self.marks:
            return None
        i = bisect_right(self.marks, frame, key=_get_key_frame_number)
        before = self.marks[i - 1]
        after = self.marks[i] if i < len(self.marks) else None
        if before.box is None or after is None or after.box is None:
            return before.box
        if self._stretch_at(before.frame) != self._stretch_at(after.frame):
            return before.box
        part = Fraction(frame - before.frame, after.frame - before.frame)
        return _interpolate_boxes(before.box, after.box, part)

    def seen_at(self, frame: int) -> bool:
        """Return whether the object is visible on `frame`."""
        return self._stretch_at(frame) is not None

    def marks_in(self, stretch: FrameSpan) -> Sequence[KeyFrameBox]:
        """Return the key frames of the track inside the frame range `stretch`."""
        return _select_key_frames_within(self.marks, stretch)

    def _stretch_at(self, frame: int) -> FrameSpan | None:
        return _find_containing_span(self.stretches, frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedVideo:
    """Annotations of one video by one person; `None` and "" stand for values missing in the file."""

    name: str
    by: str = ""
    """Annotator as named in the file."""
    origin: str = ""
    """Identifier of the annotation, with the name of its tool."""
    rate: Fraction | None = None
    n_frames: int | None = None
    width: int | None = None
    height: int | None = None
    tracks: tuple[ObjectTrack, ...] = ()
    said: tuple[FieldAnswer, ...] = ()
    """Answers about the whole video."""

    def require_size(self) -> tuple[int, int]:
        """Return width and height of the video in pixels; raise `InvalidValueError` if unknown."""
        if self.width is None or self.height is None:
            msg = "the size of its frames is unknown. Give --size WIDTHxHEIGHT"
            raise InvalidValueError(msg)
        return self.width, self.height

    def require_rate(self) -> Fraction:
        """Return the frame rate of the video in frames per second; raise `InvalidValueError` if unknown."""
        if self.rate is None:
            msg = "its frame rate is unknown. Give --rate, 30000/1001 for example"
            raise InvalidValueError(msg)
        return self.rate

    def require_frames(self) -> int:
        """Return the number of frames of the video; raise `InvalidValueError` if unknown."""
        if self.n_frames is None:
            msg = "its number of frames is unknown. Give --frames"
            raise InvalidValueError(msg)
        return self.n_frames


Found = AnnotatedVideo | Rejected
"""Result of a reader for each part of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoPropertyDefaults:
    """Frame rate, frame count and size that the user gives for videos whose file lacks them."""

    rate: Fraction | None = None
    n_frames: int | None = None
    width: int | None = None
    height: int | None = None


def require_track_below_limit(tracks: Sized) -> None:
    """Raise `InvalidValueError` if a video with `tracks` has the maximum number of tracks."""
    if len(tracks) >= MOST_TRACKS:
        msg = f"more than {MOST_TRACKS} tracks in one video. Split it"
        raise InvalidValueError(msg)


def build_span_to_video_end(first: int, n_frames: int | None) -> FrameSpan:
    """Return the frame range from `first` to the last of the video's `n_frames` frames.

    Raises:
        InvalidValueError: The number of frames is unknown, or `first` is after the end.
    """
    if n_frames is None:
        msg = "it has no end, and the number of frames is unknown. Give --frames"
        raise InvalidValueError(msg)
    if first >= n_frames:
        msg = f"it is seen on frame {first} of a video of {n_frames}. Look at its length"
        raise InvalidValueError(msg)
    return FrameSpan(first, n_frames - 1)


def build_object_track(
    id_: str,
    label: str,
    marks: Iterable[KeyFrameBox],
    stretches: Iterable[FrameSpan],
    *,
    said: Sequence[FieldAnswer] = (),
    n_frames: int | None = None,
) -> ObjectTrack:
    """Build a normalised track: disjoint frame ranges, and sorted key frames without redundant ones.

    Raises:
        InvalidValueError: The track is visible on no frame or after the end of the video, ranges
            overlap, a key frame is outside all ranges, a range has no key frame, a frame has two
            key frames, or there are too many key frames.
    """
    in_order = sorted(marks, key=_get_key_frame_number)
    apart = sorted(stretches)
    if apart and n_frames is not None and apart[-1].last >= n_frames:
        msg = f"it is seen on frame {apart[-1].last} of a video of {n_frames}. Look at its length"
        raise InvalidValueError(msg)
    if not apart or len(in_order) > MOST_MARKS:
        msg = (
            f"{len(in_order)} key frames on {len(apart)} stretches are no track. Look at its frames"
        )
        raise InvalidValueError(msg)
    _require_consistent_key_frames(in_order, apart)
    joined, key_frames = _join_adjacent_spans(in_order, apart)
    return ObjectTrack(
        id=id_,
        label=label,
        stretches=tuple(joined),
        marks=tuple(_iter_needed_key_frames(key_frames, joined)),
        said=tuple(said),
    )


def _join_adjacent_spans(
    in_order: Sequence[KeyFrameBox], apart: Sequence[FrameSpan]
) -> tuple[list[FrameSpan], list[KeyFrameBox]]:
    """Merge adjacent frame ranges of a track; each original range begins with a key frame."""
    key_frames: list[KeyFrameBox] = []
    joined: list[FrameSpan] = []
    for stretch in apart:
        inside = list(_select_key_frames_within(in_order, stretch))
        if in_order and not inside:
            msg = f"no key frame on frames {stretch.first} to {stretch.last}. Look at its frames"
            raise InvalidValueError(msg)
        if inside and inside[0].frame > stretch.first:
            inside.insert(0, replace(inside[0], frame=stretch.first))
        if joined and joined[-1].last + 1 == stretch.first:
            # Adjacent ranges are merged; an added key frame keeps the box still until it jumps.
            if key_frames and key_frames[-1].frame < joined[-1].last:
                key_frames.append(replace(key_frames[-1], frame=joined[-1].last))
            joined[-1] = FrameSpan(joined[-1].first, stretch.last)
        else:
            joined.append(stretch)
        key_frames.extend(inside)
    return joined, key_frames


def _require_consistent_key_frames(
    marks: Sequence[KeyFrameBox], stretches: Sequence[FrameSpan]
) -> None:
    for a, b in itertools.pairwise(marks):
        if a.frame == b.frame:
            msg = f"two key frames for frame {a.frame}. Keep one of them"
            raise InvalidValueError(msg)
    for before, after in itertools.pairwise(stretches):
        if after.first <= before.last:
            msg = f"two stretches contain frame {after.first}. Join them"
            raise InvalidValueError(msg)
    for mark in marks:
        if _find_containing_span(stretches, mark.frame) is None:
            msg = f"a key frame at frame {mark.frame}, where it is not seen. Widen the stretch"
            raise InvalidValueError(msg)


def _select_key_frames_within(
    marks: Sequence[KeyFrameBox], stretch: FrameSpan
) -> Sequence[KeyFrameBox]:
    start = bisect_left(marks, stretch.first, key=_get_key_frame_number)
    return marks[start : bisect_right(marks, stretch.last, key=_get_key_frame_number)]


def _find_containing_span(stretches: Sequence[FrameSpan], frame: int) -> FrameSpan | None:
    i = bisect_right(stretches, frame, key=lambda stretch: stretch.first) - 1
    return stretches[i] if i >= 0 and frame <= stretches[i].last else None


def _get_key_frame_number(mark: KeyFrameBox) -> int:
    return mark.frame


def _iter_needed_key_frames(
    marks: Sequence[KeyFrameBox], stretches: Sequence[FrameSpan]
) -> Iterable[KeyFrameBox]:
    """Yield the key frames of a track, without those at the end of a range that repeat the one before."""
    firsts = {stretch.first for stretch in stretches}
    lasts = {stretch.last for stretch in stretches}
    for number, mark in enumerate(marks):
        repeats = number > 0 and replace(mark, frame=marks[number - 1].frame) == marks[number - 1]
        if not (repeats and mark.frame in lasts and mark.frame not in firsts):
            yield mark


def _interpolate_boxes(before: Box, after: Box, part: Fraction) -> Box:
    weight = float(part)
    pairs = zip(
        (before.x0, before.y0, before.x1, before.y1),
        (after.x0, after.y0, after.x1, after.y1),
        strict=True,
    )
    # Rounding must not move a box out of the frame.
    return Box(*(min(1.0, max(0.0, a + (b - a) * weight)) for a, b in pairs))


def iter_videos_with_file_names(
    videos: Iterable[AnnotatedVideo], suffix: str
) -> Iterator[tuple[AnnotatedVideo, str]]:
    """Yield each video with the file name to write it to; no two videos get the same file name."""
    used: set[str] = set()
    for video in videos:
        stem = make_safe_file_name(video.name)
        # Some file systems are case-insensitive.
        names = (stem if n == 1 else f"{stem}-{n}" for n in itertools.count(1))
        name = next(name for name in names if name.casefold() not in used)
        used.add(name.casefold())
        yield video, f"{name}.{suffix}"
