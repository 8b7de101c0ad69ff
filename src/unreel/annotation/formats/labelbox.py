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
            track.id: [[each.first + 1, each.last + 1] for each in track.stretches]
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
    found: dict[str, Any] = {
        "feature_id": track.id,
        "name": track.label,
        "annotation_kind": kind,
        "classifications": _build_answer_classifications(track.said),
    }
    if mark.box is not None:
        width, height = size
        found["bounding_box"] = {
            "top": mark.box.y0 * height,
            "left": mark.box.x0 * width,
            "height": (mark.box.y1 - mark.box.y0) * height,
            "width": (mark.box.x1 - mark.box.x0) * width,
        }
    if mark.mask:
        found["mask"] = {"url": mark.mask}
    return found


def _build_classification(track: ObjectTrack) -> dict[str, Any]:
    """Return a track without boxes as a classification: its label asks, other questions are nested."""
    chosen = [s for s in track.said if s.question == track.label and not s.written]
    own = [word for said in chosen for word in said.answers]
    others = [said for said in track.said if said not in chosen]
    return {
        "feature_id": track.id,
        "name": track.label,
        "checklist_answers": [{"name": word} for word in own],
        "classifications": _build_answer_classifications(others),
    }


def _build_answer_classifications(said: Sequence[FieldAnswer]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in said:
        words = [{"name": word} for word in each.answers]
        if each.written:
            texts = [{"content": word} for word in each.answers]
            found += [{"name": each.question, "text_answer": held} for held in texts]
        else:
            found.append({"name": each.question, "checklist_answers": words})
    return found


_MASKS: Final = ("mask", "composite_mask")
_DEEPEST: Final = 8
Size = tuple[int | None, int | None]


def read_labelbox(path: Path, given: VideoPropertyDefaults) -> Iterator[Found]:
    """Yield one annotated video for each label of each data row of a Labelbox export."""
    return iter_parsed_json_items(
        path, lambda where, row: _iter_row_videos(where, require_json_object(row, "the row"), given)
    )


def _iter_row_videos(
    where: str, row: Mapping[str, Any], given: VideoPropertyDefaults
) -> Iterator[Found]:
    about = require_json_object(row.get("data_row"), "data_row")
    name = _parse_clip_name(about) or where
    media = row.get("media_attributes")
    facts = media if isinstance(media, dict) else {}
    projects = require_json_object(row.get("projects"), "projects")
    labels = [
        (project, label)
        for project, held in projects.items()
        if isinstance(held, dict) and isinstance(held.get("labels"), list)
        for label in held["labels"]
    ]
    for project, label in labels:
        try:
            told = require_json_object(label, "a label")
            yield from _iter_label_videos(
                name, f"labelbox:{parse_bounded_text(project)}", told, facts, given
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
    given: VideoPropertyDefaults,
) -> Iterator[Found]:
    annotations = require_json_object(label.get("annotations"), "annotations")
    if "frames" not in annotations:
        msg = f"a label of kind {format_untrusted_value(label.get('label_kind'))}, and not of a video. Leave it out"
        raise InvalidValueError(msg)
    details = label.get("label_details")
    sides = _parse_frame_size(facts, given)
    n_frames = _find_positive_count(facts.get("frame_count"), 10**9) or given.n_frames
    tracks: list[ObjectTrack] = []
    for id_, found in _group_features_by_id(annotations).items():
        try:
            require_track_below_limit(tracks)
            tracks.append(_build_track(id_, found, annotations, sides, n_frames))
        except InvalidValueError as error:
            yield Rejected(f"{name}: feature {id_[:60]}", str(error))
    yield AnnotatedVideo(
        name=name,
        by=parse_bounded_text(details.get("created_by")) if isinstance(details, dict) else "",
        origin=f"{origin}:{parse_bounded_text(label.get('id'))}",
        rate=parse_frame_rate(facts.get("frame_rate")) or given.rate,
        n_frames=n_frames,
        width=sides[0],
        height=sides[1],
        tracks=tuple(tracks),
        said=tuple(_iter_nested_answers(annotations.get("classifications"))),
    )


def _parse_frame_size(facts: Mapping[str, Any], given: VideoPropertyDefaults) -> Size:
    width, height = (
        _find_positive_count(facts.get(side), MOST_PIXELS) for side in ("width", "height")
    )
    return (width, height) if width and height else (given.width, given.height)


def _find_positive_count(value: object, most: int) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most
    return value if is_count and isinstance(value, int) else None


def _group_features_by_id(
    annotations: Mapping[str, Any],
) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Return the content of each feature on each of its frames, from 0, by feature id."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for key, content in require_json_object(annotations.get("frames"), "frames").items():
        frame = parse_count(key, "a frame") - 1
        if frame < 0:
            msg = "a frame 0, where frames count from 1. Export it again"
            raise InvalidValueError(msg)
        held = require_json_object(content, "a frame's content")
        objects = held.get("objects") or {}
        for id_, each in require_json_object(objects, "objects").items():
            found.setdefault(id_, {})[frame] = require_json_object(each, "an object")
        for each in _get_list_or_empty(held.get("classifications")):
            said = require_json_object(each, "a classification")
            id_ = parse_bounded_text(said.get("feature_id")) or parse_bounded_text(said.get("name"))
            found.setdefault(id_, {})[frame] = said
    return found


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
    marks = [_build_key_frame_box(frame, on[frame], sides) for frame in keys]
    said = [] if marks else [said for each in on.values() for said in _iter_nested_answers([each])]
    for frame in keys or on:
        said += _iter_nested_answers(on[frame].get("classifications"))
    return build_object_track(
        id_,
        parse_bounded_text(first.get("name")),
        marks,
        stretches,
        said=_merge_repeated_answers(said),
        n_frames=n_frames,
    )


def _parse_visible_spans(
    id_: str, on: Mapping[int, Mapping[str, Any]], annotations: Mapping[str, Any]
) -> list[FrameSpan]:
    segments = annotations.get("segments")
    told = segments.get(id_) if isinstance(segments, dict) else None
    if not isinstance(told, list) or not told:
        return [FrameSpan(min(on), max(on))]
    found = []
    for segment in told:
        if not isinstance(segment, list) or len(segment) != 2:  # noqa: PLR2004  first and last
            msg = f"a segment is {format_untrusted_value(segment)}. Write the first frame and the last"
            raise InvalidValueError(msg)
        first, last = (parse_count(frame, "a segment's frame") - 1 for frame in segment)
        found.append(FrameSpan(first, last))
    return found


def _select_key_frames(
    id_: str,
    on: Mapping[int, Mapping[str, Any]],
    annotations: Mapping[str, Any],
    stretches: Sequence[FrameSpan],
) -> list[int]:
    """Return key frames, range starts and frames with a mask; all drawn frames if none is a key frame."""
    drawn = {frame for frame, each in on.items() if _has_drawn_shape(each)}
    told = annotations.get("key_frame_feature_map")
    keys = told.get(id_) if isinstance(told, dict) else None
    if isinstance(keys, dict):
        keys = [frame for frame, is_key in keys.items() if is_key]
    if not isinstance(keys, list) or not keys:
        return sorted(drawn)
    named = {parse_count(key, "a key frame") - 1 for key in keys}
    named |= {stretch.first for stretch in stretches}
    named |= {frame for frame in drawn if any(kind in on[frame] for kind in _MASKS)}
    return sorted(named & drawn)


def _has_drawn_shape(each: Mapping[str, Any]) -> bool:
    kind = each.get("annotation_kind")
    if "bounding_box" in each or any(mask in each for mask in _MASKS):
        return True
    if isinstance(kind, str):
        msg = f"a {format_untrusted_value(kind)} has no box. Draw boxes or masks"
        raise InvalidValueError(msg)
    return False


def _build_key_frame_box(frame: int, each: Mapping[str, Any], sides: Size) -> KeyFrameBox:
    mask = ""
    for kind in _MASKS:
        held = each.get(kind)
        mask = mask or parse_bounded_text(held.get("url") if isinstance(held, dict) else held)
    drawn = each.get("bounding_box")
    box = None if drawn is None else _parse_box(require_json_object(drawn, "bounding_box"), sides)
    if box is None and not mask:
        msg = f"frame {frame + 1} has neither a box nor a mask. Draw one"
        raise InvalidValueError(msg)
    return KeyFrameBox(frame, box, mask)


def _parse_box(drawn: Mapping[str, Any], sides: Size) -> Box:
    width, height = sides
    if width is None or height is None:
        msg = "the export does not say how large frames are. Give --size WIDTHxHEIGHT"
        raise InvalidValueError(msg)
    left, top, across, down = (
        parse_finite_number(drawn.get(key), key) for key in ("left", "top", "width", "height")
    )
    return clip_box_to_frame(
        left / width, top / height, (left + across) / width, (top + down) / height
    )


def _iter_nested_answers(held: object, depth: int = 0) -> Iterator[FieldAnswer]:
    """Yield the answers of Labelbox classifications, each followed by those of its nested ones."""
    if depth > _DEEPEST:
        msg = f"answers nested deeper than {_DEEPEST}. Export it again"
        raise InvalidValueError(msg)
    for each in _get_list_or_empty(held):
        said = require_json_object(each, "a classification")
        question = parse_bounded_text(said.get("name"))
        chosen = (said.get("radio_answer"), *_get_list_or_empty(said.get("checklist_answers")))
        answers = [
            require_json_object(answer, "an answer") for answer in chosen if answer is not None
        ]
        names = (parse_bounded_text(answer.get("name")) for answer in answers)
        if words := tuple(filter(None, names)):
            yield FieldAnswer(question, words)
        written = said.get("text_answer")
        if isinstance(written, dict) and parse_bounded_text(written.get("content")):
            yield FieldAnswer(question, (parse_bounded_text(written["content"]),), written=True)
        for answer in answers:
            yield from _iter_nested_answers(answer.get("classifications"), depth + 1)


def _merge_repeated_answers(said: Sequence[FieldAnswer]) -> list[FieldAnswer]:
    """Return the answers by question, without duplicates: exports repeat them on each frame."""
    found: dict[tuple[str, bool], dict[str, None]] = {}
    for each in said:
        key = each.question, each.written
        found.setdefault(key, {}).update(dict.fromkeys(each.answers))
    return [FieldAnswer(name, tuple(words), written) for (name, written), words in found.items()]


def _get_list_or_empty(held: object) -> list[Any]:
    return held if isinstance(held, list) else []
