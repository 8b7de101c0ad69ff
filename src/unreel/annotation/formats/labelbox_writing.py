"""Labelbox's export v2, written: one line for each video, with key frames and segments."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from unreel.annotation.formats.document import (
    ForeignAnswer,
    ForeignTrack,
    ForeignVideo,
    KeyFrameBox,
)
from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidValueError
from unreel.core.writing import OutputDirectory

FILE: Final = "labelbox.ndjson"
_PROJECT: Final = "unreel"


def write_labelbox(videos: Iterable[ForeignVideo], folder: OutputDirectory) -> Iterator[Rejected]:
    """Write `labelbox.ndjson`; skip a video whose boxes cannot be converted to pixels."""
    with folder.create_text(FILE) as file:
        for video in videos:
            try:
                file.write(json.dumps(_row(video), ensure_ascii=False) + "\n")
            except InvalidValueError as error:
                yield Rejected(video.name, str(error))


def _row(video: ForeignVideo) -> dict[str, Any]:
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
        "annotations": _annotations(video, size),
    }
    return {
        "data_row": {"id": video.name, "external_id": video.name},
        "media_attributes": {key: fact for key, fact in facts.items() if fact is not None},
        "projects": {_PROJECT: {"name": _PROJECT, "labels": [label]}},
    }


def _annotations(video: ForeignVideo, size: tuple[int, int]) -> dict[str, Any]:
    frames: dict[int, dict[str, Any]] = {}
    for track in video.tracks:
        for mark in track.marks:
            held = frames.setdefault(mark.frame + 1, {"objects": {}, "classifications": []})
            held["objects"][track.id] = _object(track, mark, size)
        if not track.marks:
            first = track.stretches[0].first + 1
            held = frames.setdefault(first, {"objects": {}, "classifications": []})
            held["classifications"].append(_classification(track))
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
        "classifications": _answers(video.said),
    }


def _object(track: ForeignTrack, mark: KeyFrameBox, size: tuple[int, int]) -> dict[str, Any]:
    kind = "VideoSegmentationMask" if mark.mask else "VideoBoundingBox"
    found: dict[str, Any] = {
        "feature_id": track.id,
        "name": track.label,
        "annotation_kind": kind,
        "classifications": _answers(track.said),
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


def _classification(track: ForeignTrack) -> dict[str, Any]:
    """A time without a place: its label is the question, and other answers hang below it."""
    chosen = [s for s in track.said if s.question == track.label and not s.written]
    own = [word for said in chosen for word in said.answers]
    others = [said for said in track.said if said not in chosen]
    return {
        "feature_id": track.id,
        "name": track.label,
        "checklist_answers": [{"name": word} for word in own],
        "classifications": _answers(others),
    }


def _answers(said: Sequence[ForeignAnswer]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in said:
        words = [{"name": word} for word in each.answers]
        if each.written:
            texts = [{"content": word} for word in each.answers]
            found += [{"name": each.question, "text_answer": held} for held in texts]
        else:
            found.append({"name": each.question, "checklist_answers": words})
    return found
