"""Reader and writer of CVAT for video 1.1: tracks of boxes in pixels, frames counted from 0.

A key frame with `outside="1"` is the first frame on which the object is no longer visible.
Frames with `keyframe="0"` are interpolated between their neighbours and ignored. Masks and
polygons are reduced to their bounding box and a reference to their position in the file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from unreel.annotation.formats.annotated_video import (
    MOST_FRAMES,
    MOST_LETTERS,
    MOST_MARKS,
    AnnotatedVideo,
    FieldAnswer,
    Found,
    FrameSpan,
    KeyFrameBox,
    ObjectTrack,
    VideoPropertyDefaults,
    build_object_track,
    build_span_to_video_end,
    iter_videos_with_file_names,
    require_track_below_limit,
)
from unreel.annotation.formats.untrusted_input import (
    MOST_PIXELS,
    clip_box_to_frame,
    format_untrusted_value,
    parse_bounded_text,
    parse_bounded_xml,
    parse_count,
    parse_finite_number,
)
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.output_files import OutputDirectory, open_regular_user_file
from unreel.core.safe_text import sanitise_lines

MASK: Final = "mask"
"""Name of the attribute in which `write_cvat` stores the location of a mask."""
_MOST_BYTES: Final = 1 << 30
_SHAPES: Final = frozenset({"box", "mask", "polygon"})
_OTHERS: Final = frozenset({"polyline", "points", "ellipse", "cuboid", "skeleton"})
_JOBS: Final = frozenset({"task", "job"})


def read_cvat(path: Path, defaults: VideoPropertyDefaults) -> Iterator[Found]:
    """Yield one annotated video for each task of a CVAT file, then the parts that could not be read."""
    collector = _CvatTaskCollector(path.name, defaults)
    broken: Rejected | None = None
    with open_regular_user_file(path) as file:
        try:
            parse_bounded_xml(file, collector, most=_MOST_BYTES, letters=MOST_LETTERS)
        except InvalidValueError as error:
            broken = Rejected(path.name, str(error))
    yield from collector.videos()
    yield from collector.rejected
    if broken is not None:
        yield broken


@dataclass(slots=True)
class _CvatTask:
    """One task of a CVAT file: its `meta` values by element name, and its tracks."""

    told: dict[str, str] = field(default_factory=dict)
    tracks: list[ObjectTrack] = field(default_factory=list)


@dataclass(slots=True)
class _CvatShape:
    frame: int
    outside: bool
    is_key: bool
    box: Box | None
    mask: str = ""
    said: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _CvatTrack:
    attributes: Mapping[str, str]
    shapes: list[_CvatShape] = field(default_factory=list)
    problem: str = ""


class _CvatTaskCollector:
    """XML callbacks that collect the tasks and tracks of a CVAT file."""

    def __init__(self, source: str, defaults: VideoPropertyDefaults) -> None:
        self.rejected: list[Rejected] = []
        self._source = source
        self._given = defaults
        self._tasks: dict[str, _CvatTask] = {}
        self._described: _CvatTask | None = None
        self._track: _CvatTrack | None = None
        self._named: str = ""
        self._n_tracks = 0

    def begin(self, path: tuple[str, ...], attributes: Mapping[str, str]) -> None:
        match path[1:]:
            case ("meta", *_, name) if name in _JOBS:
                self._described = _CvatTask()
            case ("track",):
                self._n_tracks += 1
                self._track = _CvatTrack(attributes)
            case ("track", name) if self._track is not None:
                self._shape(self._track, name, attributes)
            case ("track", _, "attribute"):
                self._named = parse_bounded_text(attributes.get("name"))
            case ("image",):
                name = parse_bounded_text(attributes.get("name")) or format_untrusted_value(
                    attributes.get("id")
                )
                reason = "an image, and no track. Export the task as `CVAT for video 1.1`"
                self._reject(name, reason)
            case () if path != ("annotations",):
                msg = f"its root is {format_untrusted_value(path[0])}, and not `annotations`. Name a CVAT file"
                raise InvalidValueError(msg)
            case _:
                pass

    def end(self, path: tuple[str, ...], text: str) -> None:
        match path[1:]:
            case ("meta", *_, name) if name in _JOBS and self._described is not None:
                self._tasks[self._described.told.get("id", "")] = self._described
                self._described = None
            case ("meta", *above, name) if self._described is not None:
                key = f"{above[-1]}/{name}" if above and above[-1] not in _JOBS else name
                self._described.told.setdefault(key, text)
            case ("track", shape, "attribute") if shape in _SHAPES and self._track:
                shapes, answer = self._track.shapes, (self._named, text)
                if shapes and answer not in shapes[-1].said:
                    shapes[-1].said.append(answer)
            case ("track",) if self._track is not None:
                self._close(self._track)
                self._track = None
            case _:
                pass

    def videos(self) -> Iterator[AnnotatedVideo]:
        """Yield one annotated video for each task, including tasks without tracks."""
        for id_, task in self._tasks.items():
            width, height = self._size(task)
            properties = task.told
            yield AnnotatedVideo(
                name=properties.get("source") or properties.get("name") or self._source,
                by=properties.get("assignee/username") or properties.get("owner/username") or "",
                origin=f"cvat:{id_}" if id_ else "cvat",
                rate=self._given.rate,
                n_frames=self._n_frames(task),
                width=width,
                height=height,
                tracks=tuple(task.tracks),
            )

    def _shape(self, track: _CvatTrack, name: str, attributes: Mapping[str, str]) -> None:
        # Frames between key frames contain no information, and are most of a large file.
        is_between = attributes.get("keyframe") == "0" and name in _SHAPES
        if track.problem or (is_between and track.shapes and track.shapes[0].is_key):
            return
        try:
            if name in _OTHERS or len(track.shapes) >= MOST_MARKS:
                _raise_unsupported_shape(name, len(track.shapes))
            if name in _SHAPES:
                track.shapes.append(self._read_shape(track, name, attributes))
        except InvalidValueError as error:
            track.problem = str(error)

    def _read_shape(
        self, track: _CvatTrack, name: str, attributes: Mapping[str, str]
    ) -> _CvatShape:
        frame = parse_count(attributes.get("frame"), "its frame")
        outside = attributes.get("outside", "0") == "1"
        size = self._size(self._task_of(track))
        # The box of a hidden object has no meaning.
        box = None if outside else _parse_box(name, attributes, size)
        reference = f"{self._source}#track={track.attributes.get('id', '')}&frame={frame}"
        return _CvatShape(
            frame=frame,
            outside=outside,
            is_key=attributes.get("keyframe", "1") == "1",
            box=box,
            mask="" if name == "box" else reference,
        )

    def _close(self, track: _CvatTrack) -> None:
        id_ = parse_bounded_text(track.attributes.get("id")) or str(self._n_tracks)
        task = self._task_of(track)
        try:
            if not track.problem:
                require_track_below_limit(task.tracks)
                task.tracks.append(_build_track(id_, track, self._n_frames(task)))
        except InvalidValueError as error:
            track.problem = str(error)
        if track.problem:
            self._reject(f"track {id_}", track.problem)

    def _task_of(self, track: _CvatTrack) -> _CvatTask:
        id_ = track.attributes.get("task_id")
        if id_ is None and len(self._tasks) == 1:
            return next(iter(self._tasks.values()))
        return self._tasks.setdefault(id_ or "", _CvatTask())

    def _n_frames(self, task: _CvatTask) -> int | None:
        for key, more in (("stop_frame", 1), ("size", 0)):
            if task.told.get(key, "").isdecimal():
                return min(int(task.told[key][:9]) + more, MOST_FRAMES)
        return self._given.n_frames

    def _size(self, task: _CvatTask) -> tuple[int | None, int | None]:
        sides = [task.told.get(f"original_size/{side}", "") for side in ("width", "height")]
        if all(side.isdecimal() and 0 < int(side[:9]) <= MOST_PIXELS for side in sides):
            return int(sides[0]), int(sides[1])
        return self._given.width, self._given.height

    def _reject(self, name: str, reason: str) -> None:
        self.rejected.append(Rejected(f"{self._source}: {name}", reason))


def _raise_unsupported_shape(name: str, n_shapes: int) -> None:
    if n_shapes >= MOST_MARKS:
        msg = f"more than {MOST_MARKS} frames in one track. Split it"
        raise InvalidValueError(msg)
    msg = f"a {name} has no box. Draw boxes, polygons or masks"
    raise InvalidValueError(msg)


def _parse_box(
    name: str, attributes: Mapping[str, str], size: tuple[int | None, int | None]
) -> Box:
    width, height = size
    if width is None or height is None:
        msg = "the file does not say how large frames are. Give --size WIDTHxHEIGHT"
        raise InvalidValueError(msg)
    match name:
        case "box":
            if parse_finite_number(attributes.get("rotation", "0"), "its rotation") != 0:
                msg = "a turned box is no box along the frame's edges. Draw it upright"
                raise InvalidValueError(msg)
            edges = [
                parse_finite_number(attributes.get(key), key)
                for key in ("xtl", "ytl", "xbr", "ybr")
            ]
        case "mask":
            left, top, across, down = (
                parse_finite_number(attributes.get(key), key)
                for key in ("left", "top", "width", "height")
            )
            edges = [left, top, left + across, top + down]
        case _:
            points = [point.partition(",") for point in attributes.get("points", "").split(";")]
            xs = [parse_finite_number(x, "a point") for x, _, _ in points]
            ys = [parse_finite_number(y, "a point") for _, _, y in points]
            edges = [min(xs), min(ys), max(xs), max(ys)]
    return clip_box_to_frame(
        edges[0] / width, edges[1] / height, edges[2] / width, edges[3] / height
    )


def _build_track(id_: str, track: _CvatTrack, n_frames: int | None) -> ObjectTrack:
    keys = [shape for shape in track.shapes if shape.is_key] or track.shapes
    keys.sort(key=lambda shape: shape.frame)
    boxes = [
        KeyFrameBox(key.frame, key.box, _get_shape_mask(key)) for key in keys if not key.outside
    ]
    return build_object_track(
        id_,
        parse_bounded_text(track.attributes.get("label")),
        boxes,
        _iter_visible_spans(keys, n_frames),
        said=_collect_shape_answers(track.shapes),
        n_frames=n_frames,
    )


def _get_shape_mask(shape: _CvatShape) -> str:
    masks = [value for name, value in shape.said if name == MASK]
    return masks[0] if masks else shape.mask


def _iter_visible_spans(keys: list[_CvatShape], n_frames: int | None) -> Iterator[FrameSpan]:
    first: int | None = None
    for key in keys:
        if key.outside and first is not None:
            yield FrameSpan(first, key.frame - 1)
            first = None
        elif not key.outside and first is None:
            first = key.frame
    if first is not None:
        yield build_span_to_video_end(first, n_frames)


def _collect_shape_answers(shapes: list[_CvatShape]) -> list[FieldAnswer]:
    """Return the distinct answers to each question for one track; CVAT repeats them on each frame."""
    answers: dict[str, dict[str, None]] = {}
    for shape in shapes:
        for name, value in shape.said:
            if name != MASK and value:
                answers.setdefault(name, {})[value] = None
    return [FieldAnswer(name, tuple(values)) for name, values in answers.items()]


def write_cvat(videos: Iterable[AnnotatedVideo], folder: OutputDirectory) -> Iterator[Rejected]:
    """Write the CVAT file `NAME.xml` of each video; yield the items that CVAT does not support."""
    for video, name in iter_videos_with_file_names(videos, "xml"):
        try:
            size = video.require_size()
            video.require_frames()
        except InvalidValueError as error:
            yield Rejected(video.name, str(error))
            continue
        if video.said:
            yield Rejected(video.name, "CVAT keeps no answers about a whole video. Keep the source")
        placed = [track for track in video.tracks if _has_all_boxes(track)]
        with folder.create_text(name) as file:
            file.writelines(_iter_xml_lines(video, placed, size))
        for track in video.tracks:
            if not _has_all_boxes(track):
                reason = "CVAT keeps no track without boxes. Keep the source"
                yield Rejected(f"{video.name}: track {track.id}", reason)


def _has_all_boxes(track: ObjectTrack) -> bool:
    return bool(track.marks) and all(mark.box is not None for mark in track.marks)


def _iter_xml_lines(
    video: AnnotatedVideo, tracks: Iterable[ObjectTrack], size: tuple[int, int]
) -> Iterator[str]:
    labels = dict.fromkeys(track.label for track in video.tracks)
    yield '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n'
    yield "<version>1.1</version>\n<meta><task>\n"
    yield f"<name>{_escape_xml_text(video.name)}</name>\n<size>{video.n_frames}</size>\n"
    yield "<mode>interpolation</mode>\n<labels>"
    yield from (f"<label><name>{_escape_xml_text(label)}</name></label>" for label in labels)
    yield "</labels>\n"
    if video.by:
        yield f"<owner><username>{_escape_xml_text(video.by)}</username></owner>\n"
    yield f"<original_size><width>{size[0]}</width><height>{size[1]}</height></original_size>\n"
    yield f"<source>{_escape_xml_text(video.name)}</source>\n</task></meta>\n"
    for track in tracks:
        yield f'<track id={_quote_xml_attribute(track.id)} label={_quote_xml_attribute(track.label)} source="manual">\n'
        yield from _iter_box_lines(track, size, video.require_frames())
        yield "</track>\n"
    yield "</annotations>\n"


def _iter_box_lines(track: ObjectTrack, size: tuple[int, int], n_frames: int) -> Iterator[str]:
    fields = "".join(
        f"<attribute name={_quote_xml_attribute(field.question)}>{_escape_xml_text(answer)}</attribute>"
        for field in track.said
        for answer in field.answers
    )
    for stretch in track.stretches:
        marks = track.marks_in(stretch)
        for mark in marks:
            yield _format_box_element(mark, mark.frame, size, outside=False, fields=fields)
        if stretch.last + 1 < n_frames:
            yield _format_box_element(
                marks[-1], stretch.last + 1, size, outside=True, fields=fields
            )


def _format_box_element(
    mark: KeyFrameBox, frame: int, size: tuple[int, int], *, outside: bool, fields: str
) -> str:
    box = mark.box or Box(0, 0, 1, 1)
    edges = (box.x0 * size[0], box.y0 * size[1], box.x1 * size[0], box.y1 * size[1])
    keys = ("xtl", "ytl", "xbr", "ybr")
    # CVAT itself writes hundredths of a pixel, and reads any precision.
    corners = " ".join(f'{key}="{edge:.6f}"' for key, edge in zip(keys, edges, strict=True))
    mask = (
        f'<attribute name="{MASK}">{_escape_xml_text(mark.mask)}</attribute>' if mark.mask else ""
    )
    return (
        f'<box frame="{frame}" keyframe="1" outside="{outside:d}" occluded="0" {corners} '
        f'z_order="0">{fields}{mask}</box>\n'
    )


def _escape_xml_text(text: str) -> str:
    return escape(sanitise_lines(text))


def _quote_xml_attribute(text: str) -> str:
    return quoteattr(sanitise_lines(text))
