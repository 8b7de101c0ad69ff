"""Label Studio's JSON export, read: tasks with annotations, each a video that one person marked.

Frames count from 1, boxes are percentages, `time` is one frame late and not read. A key frame with
`enabled: false` is the last frame on which the thing is seen; a last one left enabled runs to the end.
Answers about a region are results of their own with the region's id.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from unreel.annotation.formats.document import (
    MOST_FRAMES,
    MOST_MARKS,
    ForeignAnswer,
    ForeignTrack,
    ForeignVideo,
    FormatDefaults,
    Found,
    FrameSpan,
    KeyFrameBox,
    open_stretch,
    require_few,
    track_of,
)
from unreel.annotation.formats.items import read_items
from unreel.annotation.formats.shapes import (
    MOST_PIXELS,
    clip_box_to_frame,
    parse_count,
    parse_number,
    parse_rate,
    parse_text,
    require_mapping,
    show,
)
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.output_files import OutputDirectory

BOXES: Final = "videorectangle"
TIMES: Final = "timelinelabels"
_REGIONS: Final = (BOXES, TIMES)
_VIDEOS: Final = ("video", "video_url", "url")
_ANSWERS: Final = ("choices", "text", "rating", "number", "labels", "datetime")


def read_label_studio(path: Path, given: FormatDefaults) -> Iterator[Found]:
    """Read a Label Studio export: one video for each annotation of each task."""
    return read_items(
        path, lambda where, task: _iter_task_videos(where, require_mapping(task, "the task"), given)
    )


def _iter_task_videos(
    where: str, task: Mapping[str, Any], given: FormatDefaults
) -> Iterator[Found]:
    data = require_mapping(task.get("data"), "data")
    name = (
        next((_parse_file_path(data[key]) for key in _VIDEOS if parse_text(data.get(key))), "")
        or where
    )
    annotations = task.get("annotations")
    if not isinstance(annotations, list):
        msg = "no annotations. Export as JSON, and not as JSON_MIN, which drops required fields"
        raise InvalidValueError(msg)
    if not annotations:
        yield Rejected(f"{where}: {name}", "it has no annotation. Leave the task out")
    for each in annotations:
        try:
            told = require_mapping(each, "an annotation")
            if told.get("was_cancelled"):
                yield Rejected(f"{where}: {name}", "it was skipped. Leave it out")
                continue
            yield from _iter_annotation_videos(
                name, f"label-studio:{_parse_id(task)}", told, data, given
            )
        except InvalidValueError as error:
            yield Rejected(f"{where}: {name}", str(error))


def _parse_id(held: Mapping[str, Any]) -> str:
    return parse_text(str(held.get("id", "")))


def _parse_file_path(address: str) -> str:
    """Return the file path, with its parent directories, from a Label Studio URL."""
    return parse_text(address).rpartition("?d=")[2]


def _iter_annotation_videos(
    name: str, origin: str, told: Mapping[str, Any], data: Mapping[str, Any], given: FormatDefaults
) -> Iterator[Found]:
    results = told.get("result")
    if not isinstance(results, list):
        msg = f"result is {show(results)}. Write a list"
        raise InvalidValueError(msg)
    regions: dict[str, Mapping[str, Any]] = {}
    said: dict[str, list[ForeignAnswer]] = {}
    for result in results:
        try:
            _sort_in(require_mapping(result, "a result"), regions, said)
        except InvalidValueError as error:
            yield Rejected(name, str(error))
    n_frames = _find_frame_count((data, *regions.values()), given)
    tracks: list[ForeignTrack] = []
    for id_, region in regions.items():
        try:
            tracks.append(_build_track(id_, region, said.pop(id_, []), n_frames))
        except InvalidValueError as error:
            yield Rejected(f"{name}: region {id_[:60]}", str(error))
    width, height = (_find_side_length(data.get(side)) for side in ("width", "height"))
    is_sized = width is not None and height is not None
    yield ForeignVideo(
        name=name,
        by=_parse_annotator_name(told),
        origin=f"{origin}:{_parse_id(told)}",
        rate=_find_frame_rate(data, regions.values(), given),
        n_frames=n_frames,
        width=width if is_sized else given.width,
        height=height if is_sized else given.height,
        tracks=tuple(tracks),
        said=tuple(each for rest in said.values() for each in rest),
    )


def _sort_in(
    result: Mapping[str, Any],
    regions: dict[str, Mapping[str, Any]],
    said: dict[str, list[ForeignAnswer]],
) -> None:
    """Add a result to the regions, or to the answers of its region."""
    id_ = parse_text(result.get("id"))
    value = require_mapping(result.get("value"), "value")
    kind = result.get("type")
    if kind in _REGIONS:
        if id_ in regions:
            msg = f"region {show(id_)} is there twice. Export it again"
            raise InvalidValueError(msg)
        require_few(regions)
        regions[id_] = value
        return
    question = parse_text(result.get("from_name"))
    for key in _ANSWERS:
        if key in value:
            answers = ForeignAnswer(question, _parse_words(value[key]), written=key == "text")
            said.setdefault(id_, []).append(answers)
            return
    msg = f"a result of type {show(kind)} is not read. Take it out"
    raise InvalidValueError(msg)


def _parse_words(value: object) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    return tuple(parse_text(str(word)) for word in found if isinstance(word, str | int | float))


def _parse_annotator_name(told: Mapping[str, Any]) -> str:
    who = told.get("completed_by")
    named = parse_text(who.get("email")) if isinstance(who, dict) else ""
    return (
        named
        or parse_text(told.get("created_username")).strip()
        or (str(who) if isinstance(who, int) else "")
    )


def _find_frame_count(tellers: Iterable[Mapping[str, Any]], given: FormatDefaults) -> int | None:
    told = [value.get("framesCount") for value in tellers]
    counts = [int(n) for n in told if isinstance(n, int | float) and 0 < n <= MOST_FRAMES]
    return max(counts, default=given.n_frames)


def _find_frame_rate(
    data: Mapping[str, Any], regions: Iterable[Mapping[str, Any]], given: FormatDefaults
) -> Fraction | None:
    if (told := parse_rate(data.get("fps"))) is not None:
        return told
    if given.rate is not None:
        return given.rate
    for value in regions:
        frames, seconds = value.get("framesCount"), value.get("duration")
        if isinstance(frames, int | float) and isinstance(seconds, int | float) and seconds > 0:
            return parse_rate(frames / seconds)
    return None


def _find_side_length(value: object) -> int | None:
    try:
        return parse_count(value, "a side", most=MOST_PIXELS) or None
    except InvalidValueError:
        return None


def _build_track(
    id_: str, value: Mapping[str, Any], said: list[ForeignAnswer], n_frames: int | None
) -> ForeignTrack:
    labels = value.get("labels") or value.get(TIMES) or []
    label, *more = _parse_words(labels) or ("",)
    if more:
        said = [*said, ForeignAnswer("labels", tuple(more))]
    if "ranges" in value:
        return track_of(
            id_, label, (), _iter_range_spans(value["ranges"]), said=said, n_frames=n_frames
        )
    keys = _parse_key_frames(value.get("sequence"))
    marks = [
        KeyFrameBox(frame, _parse_box(key), parse_text(key.get("mask"))) for frame, key in keys
    ]
    stretches = _iter_visible_spans(keys, n_frames)
    return track_of(id_, label, marks, stretches, said=said, n_frames=n_frames)


def _iter_range_spans(held: object) -> Iterator[FrameSpan]:
    for each in held if isinstance(held, list) else ():
        told = require_mapping(each, "a range")
        first, last = (parse_count(told.get(key), key) - 1 for key in ("start", "end"))
        yield FrameSpan(first, last)


def _parse_key_frames(sequence: object) -> list[tuple[int, Mapping[str, Any]]]:
    if not isinstance(sequence, list) or not sequence or len(sequence) > MOST_MARKS:
        msg = f"its sequence is {show(sequence)}. Write key frames"
        raise InvalidValueError(msg)
    keys = [require_mapping(key, "a key frame") for key in sequence]
    numbered = [(parse_count(key.get("frame"), "its frame") - 1, key) for key in keys]
    numbered.sort(key=lambda pair: pair[0])
    if numbered[0][0] < 0:
        msg = "a key frame 0, where frames count from 1. Export it again"
        raise InvalidValueError(msg)
    return numbered


def _iter_visible_spans(
    keys: list[tuple[int, Mapping[str, Any]]], n_frames: int | None
) -> Iterator[FrameSpan]:
    first: int | None = None
    for frame, key in keys:
        first = frame if first is None else first
        if not key.get("enabled", True):
            yield FrameSpan(first, frame)
            first = None
    if first is not None:
        yield open_stretch(first, n_frames)


def _parse_box(key: Mapping[str, Any]) -> Box:
    if parse_number(key.get("rotation", 0), "rotation") != 0:
        msg = "a turned box is no box along the frame's edges. Draw it upright"
        raise InvalidValueError(msg)
    left, top, across, down = (
        parse_number(key.get(name), name) / 100 for name in ("x", "y", "width", "height")
    )
    return clip_box_to_frame(left, top, left + across, top + down)


FILE: Final = "label-studio.json"


def write_label_studio(
    videos: Iterable[ForeignVideo], folder: OutputDirectory
) -> Iterator[Rejected]:
    """Write `label-studio.json`; report and skip masks without a known position."""
    with folder.create_text(FILE) as file:
        file.write("[")
        for number, video in enumerate(videos):
            written = [track for track in video.tracks if _is_written(track)]
            file.write(",\n" if number else "\n")
            file.write(json.dumps(_write_task(number, video, written), ensure_ascii=False))
            for track in video.tracks:
                if not _is_written(track):
                    why = "Label Studio keeps no mask track without boxes. Keep the source"
                    yield Rejected(f"{video.name}: track {track.id}", why)
        file.write("\n]\n")


def _is_written(track: ForeignTrack) -> bool:
    return all(mark.box is not None for mark in track.marks)


def _write_task(number: int, video: ForeignVideo, tracks: Sequence[ForeignTrack]) -> dict[str, Any]:
    data: dict[str, Any] = {"video": video.name}
    if video.rate is not None:
        data["fps"] = str(video.rate)
    if video.n_frames is not None:
        data["framesCount"] = video.n_frames
    if video.width is not None and video.height is not None:
        data |= {"width": video.width, "height": video.height}
    results = [result for track in tracks for result in _iter_track_results(track, video)]
    results += [
        _build_answer_result(f"video-{place}", said) for place, said in enumerate(video.said)
    ]
    who: dict[str, Any] = {"created_username": video.by}
    if "@" in video.by:
        who = {"completed_by": {"email": video.by}}
    return {
        "id": number + 1,
        "data": data,
        "annotations": [{"id": video.origin.rpartition(":")[2], **who, "result": results}],
    }


def _iter_track_results(track: ForeignTrack, video: ForeignVideo) -> Iterator[dict[str, Any]]:
    known: dict[str, Any] = {}
    if video.n_frames is not None:
        known["framesCount"] = video.n_frames
        if video.rate is not None:
            known["duration"] = float(video.n_frames / video.rate)
    if track.marks:
        keys = [key for stretch in track.stretches for key in _write_keys(track, stretch)]
        value = {**known, "sequence": keys, "labels": [track.label]}
        name, kind = "box", BOXES
    else:
        ranges = [{"start": each.first + 1, "end": each.last + 1} for each in track.stretches]
        value = {**known, "ranges": ranges, TIMES: [track.label]}
        name, kind = "time", TIMES
    yield {"id": track.id, "type": kind, "from_name": name, "to_name": "video", "value": value}
    yield from (_build_answer_result(track.id, said) for said in track.said)


def _write_keys(track: ForeignTrack, stretch: FrameSpan) -> Iterator[dict[str, Any]]:
    """Return the key frames of a range; the last one, added if missing, ends it."""
    marks = track.marks_in(stretch)
    for mark in marks:
        yield _build_key_frame(mark, mark.frame, enabled=mark.frame < stretch.last)
    if marks[-1].frame < stretch.last:
        yield _build_key_frame(marks[-1], stretch.last, enabled=False)


def _build_key_frame(mark: KeyFrameBox, frame: int, *, enabled: bool) -> dict[str, Any]:
    box = mark.box or Box(0, 0, 1, 1)
    key = {
        "frame": frame + 1,
        "enabled": enabled,
        "rotation": 0,
        "x": box.x0 * 100,
        "y": box.y0 * 100,
        "width": (box.x1 - box.x0) * 100,
        "height": (box.y1 - box.y0) * 100,
    }
    return key | ({"mask": mark.mask} if mark.mask else {})


def _build_answer_result(id_: str, said: ForeignAnswer) -> dict[str, Any]:
    kind, key = ("textarea", "text") if said.written else ("choices", "choices")
    return {
        "id": id_,
        "type": kind,
        "from_name": said.question,
        "to_name": "video",
        "value": {key: list(said.answers)},
    }
