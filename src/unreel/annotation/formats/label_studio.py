"""Reader and writer of Label Studio's JSON export: one video for each annotation of each task.

Frames count from 1, and boxes are percentages. `time` is one frame late and is not read. A key
frame with `enabled: false` is the last frame on which the object is visible; a last key frame
that is enabled extends to the end of the video. Answers about a region are separate results
with the region's id.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from unreel.annotation.formats.annotated_video import (
    MOST_FRAMES,
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
    require_track_below_limit,
)
from unreel.annotation.formats.untrusted_input import (
    MOST_PIXELS,
    clip_box_to_frame,
    format_untrusted_value,
    iter_parsed_json_items,
    parse_bounded_text,
    parse_count,
    parse_finite_number,
    parse_frame_rate,
    require_json_object,
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


def read_label_studio(path: Path, props: VideoPropertyDefaults) -> Iterator[Found]:
    """Yield one annotated video for each annotation of each task of a Label Studio export."""
    return iter_parsed_json_items(
        path,
        lambda where, task: _iter_task_videos(where, require_json_object(task, "the task"), props),
    )


def _iter_task_videos(
    where: str, task: Mapping[str, Any], defaults: VideoPropertyDefaults
) -> Iterator[Found]:
    data = require_json_object(task.get("data"), "data")
    name = (
        next(
            (_parse_file_path(data[key]) for key in _VIDEOS if parse_bounded_text(data.get(key))),
            "",
        )
        or where
    )
    annotations = task.get("annotations")
    if not isinstance(annotations, list):
        msg = "no annotations. Export as JSON, and not as JSON_MIN, which drops required fields"
        raise InvalidValueError(msg)
    if not annotations:
        yield Rejected(f"{where}: {name}", "it has no annotation. Leave the task out")
    for item in annotations:
        try:
            annotation = require_json_object(item, "an annotation")
            if annotation.get("was_cancelled"):
                yield Rejected(f"{where}: {name}", "it was skipped. Leave it out")
                continue
            yield from _iter_annotation_videos(
                name, f"label-studio:{_parse_item_id(task)}", annotation, data, defaults
            )
        except InvalidValueError as error:
            yield Rejected(f"{where}: {name}", str(error))


def _parse_item_id(item: Mapping[str, Any]) -> str:
    return parse_bounded_text(str(item.get("id", "")))


def _parse_file_path(address: str) -> str:
    """Return the path of the video file from the URL that Label Studio stores, including its folders."""
    return parse_bounded_text(address).rpartition("?d=")[2]


def _iter_annotation_videos(
    name: str,
    origin: str,
    annotation: Mapping[str, Any],
    data: Mapping[str, Any],
    defaults: VideoPropertyDefaults,
) -> Iterator[Found]:
    results = annotation.get("result")
    if not isinstance(results, list):
        msg = f"result is {format_untrusted_value(results)}. Write a list"
        raise InvalidValueError(msg)
    regions: dict[str, Mapping[str, Any]] = {}
    answers: dict[str, list[FieldAnswer]] = {}
    for result in results:
        try:
            _add_annotation_result(require_json_object(result, "a result"), regions, answers)
        except InvalidValueError as error:
            yield Rejected(name, str(error))
    n_frames = _find_frame_count((data, *regions.values()), defaults)
    tracks: list[ObjectTrack] = []
    for id_, region in regions.items():
        try:
            tracks.append(_build_track(id_, region, answers.pop(id_, []), n_frames))
        except InvalidValueError as error:
            yield Rejected(f"{name}: region {id_[:60]}", str(error))
    width, height = (_parse_frame_side_length(data.get(side)) for side in ("width", "height"))
    is_sized = width is not None and height is not None
    yield AnnotatedVideo(
        name=name,
        by=_parse_annotator_name(annotation),
        origin=f"{origin}:{_parse_item_id(annotation)}",
        rate=_find_frame_rate(data, regions.values(), defaults),
        n_frames=n_frames,
        width=width if is_sized else defaults.width,
        height=height if is_sized else defaults.height,
        tracks=tuple(tracks),
        said=tuple(answer for group in answers.values() for answer in group),
    )


def _add_annotation_result(
    result: Mapping[str, Any],
    regions: dict[str, Mapping[str, Any]],
    said: dict[str, list[FieldAnswer]],
) -> None:
    """Add one Label Studio result to `regions` if it is a region, else to the answers `said`.

    Args:
        result: Result of a Label Studio annotation.
        regions: Values of the regions by region id, extended in place.
        said: Answers by region id, extended in place.

    Raises:
        InvalidValueError: The region occurs twice, or the type of the result is unsupported.
    """
    id_ = parse_bounded_text(result.get("id"))
    value = require_json_object(result.get("value"), "value")
    kind = result.get("type")
    if kind in _REGIONS:
        if id_ in regions:
            msg = f"region {format_untrusted_value(id_)} is there twice. Export it again"
            raise InvalidValueError(msg)
        require_track_below_limit(regions)
        regions[id_] = value
        return
    question = parse_bounded_text(result.get("from_name"))
    for key in _ANSWERS:
        if key in value:
            answers = FieldAnswer(question, _parse_answer_texts(value[key]), written=key == "text")
            said.setdefault(id_, []).append(answers)
            return
    msg = f"a result of type {format_untrusted_value(kind)} is not read. Take it out"
    raise InvalidValueError(msg)


def _parse_answer_texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(
        parse_bounded_text(str(word)) for word in values if isinstance(word, str | int | float)
    )


def _parse_annotator_name(annotation: Mapping[str, Any]) -> str:
    who = annotation.get("completed_by")
    named = parse_bounded_text(who.get("email")) if isinstance(who, dict) else ""
    return (
        named
        or parse_bounded_text(annotation.get("created_username")).strip()
        or (str(who) if isinstance(who, int) else "")
    )


def _find_frame_count(
    tellers: Iterable[Mapping[str, Any]], defaults: VideoPropertyDefaults
) -> int | None:
    numbers = [value.get("framesCount") for value in tellers]
    counts = [int(n) for n in numbers if isinstance(n, int | float) and 0 < n <= MOST_FRAMES]
    return max(counts, default=defaults.n_frames)


def _find_frame_rate(
    data: Mapping[str, Any], regions: Iterable[Mapping[str, Any]], defaults: VideoPropertyDefaults
) -> Fraction | None:
    if (rate := parse_frame_rate(data.get("fps"))) is not None:
        return rate
    if defaults.rate is not None:
        return defaults.rate
    for value in regions:
        frames, seconds = value.get("framesCount"), value.get("duration")
        if isinstance(frames, int | float) and isinstance(seconds, int | float) and seconds > 0:
            return parse_frame_rate(frames / seconds)
    return None


def _parse_frame_side_length(value: object) -> int | None:
    try:
        return parse_count(value, "a side", most=MOST_PIXELS) or None
    except InvalidValueError:
        return None


def _build_track(
    id_: str, value: Mapping[str, Any], answers: list[FieldAnswer], n_frames: int | None
) -> ObjectTrack:
    labels = value.get("labels") or value.get(TIMES) or []
    label, *more = _parse_answer_texts(labels) or ("",)
    if more:
        answers = [*answers, FieldAnswer("labels", tuple(more))]
    if "ranges" in value:
        return build_object_track(
            id_, label, (), _iter_range_spans(value["ranges"]), said=answers, n_frames=n_frames
        )
    keys = _parse_key_frames(value.get("sequence"))
    boxes = [
        KeyFrameBox(frame, _parse_box(key), parse_bounded_text(key.get("mask")))
        for frame, key in keys
    ]
    stretches = _iter_visible_spans(keys, n_frames)
    return build_object_track(id_, label, boxes, stretches, said=answers, n_frames=n_frames)


def _iter_range_spans(ranges: object) -> Iterator[FrameSpan]:
    for item in ranges if isinstance(ranges, list) else ():
        span = require_json_object(item, "a range")
        first, last = (parse_count(span.get(key), key) - 1 for key in ("start", "end"))
        yield FrameSpan(first, last)


def _parse_key_frames(sequence: object) -> list[tuple[int, Mapping[str, Any]]]:
    if not isinstance(sequence, list) or not sequence or len(sequence) > MOST_MARKS:
        msg = f"its sequence is {format_untrusted_value(sequence)}. Write key frames"
        raise InvalidValueError(msg)
    keys = [require_json_object(key, "a key frame") for key in sequence]
    numbered = [(parse_count(key.get("frame"), "its frame") - 1, key) for key in keys]
    numbered.sort(key=lambda pair: pair[0])
    if numbered[0][0] < 0:
        msg = "a key frame 0, but frames count from 1. Export it again"
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
        yield build_span_to_video_end(first, n_frames)


def _parse_box(key: Mapping[str, Any]) -> Box:
    if parse_finite_number(key.get("rotation", 0), "rotation") != 0:
        msg = "a turned box is no box along the frame's edges. Draw it upright"
        raise InvalidValueError(msg)
    left, top, across, down = (
        parse_finite_number(key.get(name), name) / 100 for name in ("x", "y", "width", "height")
    )
    return clip_box_to_frame(left, top, left + across, top + down)


FILE: Final = "label-studio.json"


def write_label_studio(
    videos: Iterable[AnnotatedVideo], folder: OutputDirectory
) -> Iterator[Rejected]:
    """Write `label-studio.json`; yield the skipped tracks, whose masks have no known position."""
    with folder.create_text(FILE) as file:
        file.write("[")
        for number, video in enumerate(videos):
            written = [track for track in video.tracks if _can_write_track(track)]
            file.write(",\n" if number else "\n")
            file.write(json.dumps(_build_task_export(number, video, written), ensure_ascii=False))
            for track in video.tracks:
                if not _can_write_track(track):
                    reason = "Label Studio keeps no mask track without boxes. Keep the source"
                    yield Rejected(f"{video.name}: track {track.id}", reason)
        file.write("\n]\n")


def _can_write_track(track: ObjectTrack) -> bool:
    return all(mark.box is not None for mark in track.marks)


def _build_task_export(
    number: int, video: AnnotatedVideo, tracks: Sequence[ObjectTrack]
) -> dict[str, Any]:
    data: dict[str, Any] = {"video": video.name}
    if video.rate is not None:
        data["fps"] = str(video.rate)
    if video.n_frames is not None:
        data["framesCount"] = video.n_frames
    if video.width is not None and video.height is not None:
        data |= {"width": video.width, "height": video.height}
    results = [result for track in tracks for result in _iter_track_results(track, video)]
    results += [_build_answer_result(f"video-{i}", field) for i, field in enumerate(video.said)]
    who: dict[str, Any] = {"created_username": video.by}
    if "@" in video.by:
        who = {"completed_by": {"email": video.by}}
    return {
        "id": number + 1,
        "data": data,
        "annotations": [{"id": video.origin.rpartition(":")[2], **who, "result": results}],
    }


def _iter_track_results(track: ObjectTrack, video: AnnotatedVideo) -> Iterator[dict[str, Any]]:
    known: dict[str, Any] = {}
    if video.n_frames is not None:
        known["framesCount"] = video.n_frames
        if video.rate is not None:
            known["duration"] = float(video.n_frames / video.rate)
    if track.marks:
        keys = [key for stretch in track.stretches for key in _iter_key_frames(track, stretch)]
        value = {**known, "sequence": keys, "labels": [track.label]}
        name, kind = "box", BOXES
    else:
        ranges = [{"start": span.first + 1, "end": span.last + 1} for span in track.stretches]
        value = {**known, "ranges": ranges, TIMES: [track.label]}
        name, kind = "time", TIMES
    yield {"id": track.id, "type": kind, "from_name": name, "to_name": "video", "value": value}
    yield from (_build_answer_result(track.id, field) for field in track.said)


def _iter_key_frames(track: ObjectTrack, stretch: FrameSpan) -> Iterator[dict[str, Any]]:
    """Yield the key frames of one frame range in Label Studio's format; the last one ends the range."""
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


def _build_answer_result(id_: str, field: FieldAnswer) -> dict[str, Any]:
    kind, key = ("textarea", "text") if field.written else ("choices", "choices")
    return {
        "id": id_,
        "type": kind,
        "from_name": field.question,
        "to_name": "video",
        "value": {key: list(field.answers)},
    }
