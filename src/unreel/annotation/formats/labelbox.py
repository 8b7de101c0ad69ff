"""Reader and writer of Labelbox's video exports (export v2, as lines or one array).

Frames count from 1, boxes are `top`, `left`, `height` and `width` in pixels, `segments` contain
the first and the last visible frame. `key_frame_feature_map` names key frames, as a list or as
a table; exports with interpolated frames also contain the others, which are redundant. A mask
is a URL: its position is unknown unless the export also contains a box.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from unreel.annotation.formats.annotated_video import (
    MOST_MARKS,
    AnnotatedVideo,
    FieldAnswer,
    Found,
    FrameSpan,
    KeyFrameBox,
    ObjectTrack,
    VideoPropertyDefaults,
    build_object_track,
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

FILE: Final = "labelbox.ndjson"
_PROJECT: Final = "unreel"


def write_labelbox(videos: Iterable[AnnotatedVideo], folder: OutputDirectory) -> Iterator[Rejected]:
    """Write `labelbox.ndjson`; yield the skipped videos, whose boxes cannot be converted to pixels."""
    with folder.create_text(FILE) as file:
        for video in videos:
            try:
                file.write(json.dumps(_build_data_row(video), ensure_ascii=False) + "\n")
            except InvalidValueError as error:
                yield Rejected(video.name, str(error))


def _build_data_row(video: AnnotatedVideo) -> dict[str, Any]:
    size = video.require_size()
    facts = {
        "width": size[0],
        "height": size[1],
        "frame_count": video.n_frames,
        "frame_rate": None if video.rate is None else float(video.rate),
    }
    label = {
        "label_kind": "Video",
        "version": "1.0.0",
        "id": video.origin.rpartition(":")[2],
        "label_details": {"created_by": video.by},
        "annotations": _build_annotations(video, size),
    }
    return {
        "data_row": {"id": video.name, "external_id": video.name},
        "media_attributes": {key: fact for key, fact in facts.items() if fact is not None},
        "projects": {_PROJECT: {"name": _PROJECT, "labels": [label]}},
    }


def _build_annotations(video: AnnotatedVideo, size: tuple[int, int]) -> dict[str, Any]:
    frames: dict[int, dict[str, Any]] = {}
    for track in video.tracks:
        for mark in track.marks:
            held = frames.setdefault(mark.frame + 1, {"objects": {}, "classifications": []})
            held["objects"][track.id] = _build_frame_object(track, mark, size)
        if not track.marks:
            first = track.stretches[0].first + 1
            held = frames.setdefault(first, {"objects": {}, "classifications": []})
            held["classifications"].append(_build_classification(track))
    return {
        "frames": {str(frame): frames[frame] for frame in sorted(frames)},
        "segments": {
            track.id: [[span.first + 1, span.last + 1] for span in track.stretches]
            for track in video.tracks
        },
        "key_frame_feature_map": {
            track.id: {str(mark.frame + 1): True for mark in track.marks}
            for track in video.tracks
            if track.marks
        },
        "classifications": _build_answer_classifications(video.said),
    }


def _build_frame_object(
    track: ObjectTrack, mark: KeyFrameBox, size: tuple[int, int]
) -> dict[str, Any]:
    kind = "VideoSegmentationMask" if mark.mask else "VideoBoundingBox"
    result: dict[str, Any] = {
        "feature_id": track.id,
        "name": track.label,
        "annotation_kind": kind,
        "classifications": _build_answer_classifications(track.said),
    }
    if mark.box is not None:
        width, height = size
        result["bounding_box"] = {
            "top": mark.box.y0 * height,
            "left": mark.box.x0 * width,
            "height": (mark.box.y1 - mark.box.y0) * height,
            "width": (mark.box.x1 - mark.box.x0) * width,
        }
    if mark.mask:
        result["mask"] = {"url": mark.mask}
    return result


def _build_classification(track: ObjectTrack) -> dict[str, Any]:
    """Return a track without boxes as a classification: its label is the question, others are nested."""
    chosen = [s for s in track.said if s.question == track.label and not s.written]
    labels = [word for field in chosen for word in field.answers]
    others = [field for field in track.said if field not in chosen]
    return {
        "feature_id": track.id,
        "name": track.label,
        "checklist_answers": [{"name": word} for word in labels],
        "classifications": _build_answer_classifications(others),
    }


def _build_answer_classifications(fields: Sequence[FieldAnswer]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for field in fields:
        names = [{"name": word} for word in field.answers]
        if field.written:
            texts = [{"content": word} for word in field.answers]
            results += [{"name": field.question, "text_answer": text} for text in texts]
        else:
            results.append({"name": field.question, "checklist_answers": names})
    return results


_MASKS: Final = ("mask", "composite_mask")
_DEEPEST: Final = 8
Size = tuple[int | None, int | None]


def read_labelbox(path: Path, props: VideoPropertyDefaults) -> Iterator[Found]:
    """Yield one annotated video for each label of each data row of a Labelbox export."""
    return iter_parsed_json_items(
        path, lambda where, row: _iter_row_videos(where, require_json_object(row, "the row"), props)
    )


def _iter_row_videos(
    where: str, row: Mapping[str, Any], defaults: VideoPropertyDefaults
) -> Iterator[Found]:
    about = require_json_object(row.get("data_row"), "data_row")
    name = _parse_clip_name(about) or where
    media = row.get("media_attributes")
    facts = media if isinstance(media, dict) else {}
    projects = require_json_object(row.get("projects"), "projects")
    labels = [
        (project, label)
        for project, content in projects.items()
        if isinstance(content, dict) and isinstance(content.get("labels"), list)
        for label in content["labels"]
    ]
    for project, label in labels:
        try:
            item = require_json_object(label, "a label")
            yield from _iter_label_videos(
                name, f"labelbox:{parse_bounded_text(project)}", item, facts, defaults
            )
        except InvalidValueError as error:
            yield Rejected(f"{where}: {name}", str(error))
    if not labels:
        yield Rejected(f"{where}: {name}", "it has no label. Leave the row out")


def _parse_clip_name(about: Mapping[str, Any]) -> str:
    names = ("external_id", "global_key", "row_data")
    external, key, url = (parse_bounded_text(about.get(name)) for name in names)
    return external or key or url.partition("?")[0].rpartition("/")[2]


def _iter_label_videos(
    name: str,
    origin: str,
    label: Mapping[str, Any],
    facts: Mapping[str, Any],
    defaults: VideoPropertyDefaults,
) -> Iterator[Found]:
    annotations = require_json_object(label.get("annotations"), "annotations")
    if "frames" not in annotations:
        msg = f"a label of kind {format_untrusted_value(label.get('label_kind'))}, and not of a video. Leave it out"
        raise InvalidValueError(msg)
    details = label.get("label_details")
    sides = _parse_frame_size(facts, defaults)
    n_frames = _find_positive_count(facts.get("frame_count"), 10**9) or defaults.n_frames
    tracks: list[ObjectTrack] = []
    for id_, by_frame in _group_features_by_id(annotations).items():
        try:
            require_track_below_limit(tracks)
            tracks.append(_build_track(id_, by_frame, annotations, sides, n_frames))
        except InvalidValueError as error:
            yield Rejected(f"{name}: feature {id_[:60]}", str(error))
    yield AnnotatedVideo(
        name=name,
        by=parse_bounded_text(details.get("created_by")) if isinstance(details, dict) else "",
        origin=f"{origin}:{parse_bounded_text(label.get('id'))}",
        rate=parse_frame_rate(facts.get("frame_rate")) or defaults.rate,
        n_frames=n_frames,
        width=sides[0],
        height=sides[1],
        tracks=tuple(tracks),
        said=tuple(_iter_nested_answers(annotations.get("classifications"))),
    )


def _parse_frame_size(facts: Mapping[str, Any], defaults: VideoPropertyDefaults) -> Size:
    width, height = (
        _find_positive_count(facts.get(side), MOST_PIXELS) for side in ("width", "height")
    )
    return (width, height) if width and height else (defaults.width, defaults.height)


def _find_positive_count(value: object, limit: int) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= limit
    return value if is_count and isinstance(value, int) else None


def _group_features_by_id(
    annotations: Mapping[str, Any],
) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Return the content of each feature on each of its frames, from 0, by feature id."""
    features: dict[str, dict[int, Mapping[str, Any]]] = {}
    for key, content in require_json_object(annotations.get("frames"), "frames").items():
        frame = parse_count(key, "a frame") - 1
        if frame < 0:
            msg = "a frame 0, but frames count from 1. Export it again"
            raise InvalidValueError(msg)
        body = require_json_object(content, "a frame's content")
        objects = body.get("objects") or {}
        for id_, item in require_json_object(objects, "objects").items():
            features.setdefault(id_, {})[frame] = require_json_object(item, "an object")
        for item in _get_list_or_empty(body.get("classifications")):
            node = require_json_object(item, "a classification")
            id_ = parse_bounded_text(node.get("feature_id")) or parse_bounded_text(node.get("name"))
            features.setdefault(id_, {})[frame] = node
    return features


def _build_track(
    id_: str,
    on: Mapping[int, Mapping[str, Any]],
    annotations: Mapping[str, Any],
    sides: Size,
    n_frames: int | None,
) -> ObjectTrack:
    stretches = _parse_visible_spans(id_, on, annotations)
    keys = _select_key_frames(id_, on, annotations, stretches)
    if len(keys) > MOST_MARKS:
        msg = f"more than {MOST_MARKS} key frames. Split the label"
        raise InvalidValueError(msg)
    first = on[min(on)]
    boxes = [_build_key_frame_box(frame, on[frame], sides) for frame in keys]
    answers = [] if boxes else [a for item in on.values() for a in _iter_nested_answers([item])]
    for frame in keys or on:
        answers += _iter_nested_answers(on[frame].get("classifications"))
    return build_object_track(
        id_,
        parse_bounded_text(first.get("name")),
        boxes,
        stretches,
        said=_merge_repeated_answers(answers),
        n_frames=n_frames,
    )


def _parse_visible_spans(
    id_: str, on: Mapping[int, Mapping[str, Any]], annotations: Mapping[str, Any]
) -> list[FrameSpan]:
    segments = annotations.get("segments")
    ranges = segments.get(id_) if isinstance(segments, dict) else None
    if not isinstance(ranges, list) or not ranges:
        return [FrameSpan(min(on), max(on))]
    spans = []
    for segment in ranges:
        if not isinstance(segment, list) or len(segment) != 2:  # noqa: PLR2004  first and last
            msg = f"a segment is {format_untrusted_value(segment)}. Write the first frame and the last"
            raise InvalidValueError(msg)
        first, last = (parse_count(frame, "a segment's frame") - 1 for frame in segment)
        spans.append(FrameSpan(first, last))
    return spans


def _select_key_frames(
    id_: str,
    on: Mapping[int, Mapping[str, Any]],
    annotations: Mapping[str, Any],
    stretches: Sequence[FrameSpan],
) -> list[int]:
    """Return key frames, range starts and frames with a mask; all drawn frames if none is a key frame."""
    drawn = {frame for frame, item in on.items() if _has_drawn_shape(item)}
    key_map = annotations.get("key_frame_feature_map")
    keys = key_map.get(id_) if isinstance(key_map, dict) else None
    if isinstance(keys, dict):
        keys = [frame for frame, is_key in keys.items() if is_key]
    if not isinstance(keys, list) or not keys:
        return sorted(drawn)
    named = {parse_count(key, "a key frame") - 1 for key in keys}
    named |= {stretch.first for stretch in stretches}
    named |= {frame for frame in drawn if any(kind in on[frame] for kind in _MASKS)}
    return sorted(named & drawn)


def _has_drawn_shape(item: Mapping[str, Any]) -> bool:
    kind = item.get("annotation_kind")
    if "bounding_box" in item or any(mask in item for mask in _MASKS):
        return True
    if isinstance(kind, str):
        msg = f"a {format_untrusted_value(kind)} has no box. Draw boxes or masks"
        raise InvalidValueError(msg)
    return False


def _build_key_frame_box(frame: int, item: Mapping[str, Any], sides: Size) -> KeyFrameBox:
    mask = ""
    for kind in _MASKS:
        source = item.get(kind)
        mask = mask or parse_bounded_text(source.get("url") if isinstance(source, dict) else source)
    shape = item.get("bounding_box")
    box = None if shape is None else _parse_box(require_json_object(shape, "bounding_box"), sides)
    if box is None and not mask:
        msg = f"frame {frame + 1} has neither a box nor a mask. Draw one"
        raise InvalidValueError(msg)
    return KeyFrameBox(frame, box, mask)


def _parse_box(shape: Mapping[str, Any], sides: Size) -> Box:
    width, height = sides
    if width is None or height is None:
        msg = "the export does not say how large frames are. Give --size WIDTHxHEIGHT"
        raise InvalidValueError(msg)
    left, top, across, down = (
        parse_finite_number(shape.get(key), key) for key in ("left", "top", "width", "height")
    )
    return clip_box_to_frame(
        left / width, top / height, (left + across) / width, (top + down) / height
    )


def _iter_nested_answers(classifications: object, depth: int = 0) -> Iterator[FieldAnswer]:
    """Yield the answers of Labelbox classifications, each followed by those of its nested ones."""
    if depth > _DEEPEST:
        msg = f"answers nested deeper than {_DEEPEST}. Export it again"
        raise InvalidValueError(msg)
    for item in _get_list_or_empty(classifications):
        node = require_json_object(item, "a classification")
        question = parse_bounded_text(node.get("name"))
        chosen = (node.get("radio_answer"), *_get_list_or_empty(node.get("checklist_answers")))
        answers = [
            require_json_object(answer, "an answer") for answer in chosen if answer is not None
        ]
        names = (parse_bounded_text(answer.get("name")) for answer in answers)
        if labels := tuple(filter(None, names)):
            yield FieldAnswer(question, labels)
        written = node.get("text_answer")
        if isinstance(written, dict) and parse_bounded_text(written.get("content")):
            yield FieldAnswer(question, (parse_bounded_text(written["content"]),), written=True)
        for answer in answers:
            yield from _iter_nested_answers(answer.get("classifications"), depth + 1)


def _merge_repeated_answers(answers: Sequence[FieldAnswer]) -> list[FieldAnswer]:
    """Return the answers by question, without duplicates: exports repeat them on each frame."""
    merged: dict[tuple[str, bool], dict[str, None]] = {}
    for field in answers:
        key = field.question, field.written
        merged.setdefault(key, {}).update(dict.fromkeys(field.answers))
    return [FieldAnswer(name, tuple(texts), written) for (name, written), texts in merged.items()]


def _get_list_or_empty(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
