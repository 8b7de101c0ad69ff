"""Label Studio's JSON, written: tasks with annotations, as its import takes them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from unreel.annotation.formats.document import (
    ForeignAnswer,
    ForeignTrack,
    ForeignVideo,
    FrameSpan,
    KeyFrameBox,
)
from unreel.annotation.formats.label_studio import BOXES, TIMES
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.writing import OutputDirectory

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
            file.write(json.dumps(_task(number, video, written), ensure_ascii=False))
            for track in video.tracks:
                if not _is_written(track):
                    why = "Label Studio keeps no mask track without boxes. Keep the source"
                    yield Rejected(f"{video.name}: track {track.id}", why)
        file.write("\n]\n")


def _is_written(track: ForeignTrack) -> bool:
    return all(mark.box is not None for mark in track.marks)


def _task(number: int, video: ForeignVideo, tracks: Sequence[ForeignTrack]) -> dict[str, Any]:
    data: dict[str, Any] = {"video": video.name}
    if video.rate is not None:
        data["fps"] = str(video.rate)
    if video.n_frames is not None:
        data["framesCount"] = video.n_frames
    if video.width is not None and video.height is not None:
        data |= {"width": video.width, "height": video.height}
    results = [result for track in tracks for result in _results(track, video)]
    results += [_answer(f"video-{place}", said) for place, said in enumerate(video.said)]
    who: dict[str, Any] = {"created_username": video.by}
    if "@" in video.by:
        who = {"completed_by": {"email": video.by}}
    return {
        "id": number + 1,
        "data": data,
        "annotations": [{"id": video.origin.rpartition(":")[2], **who, "result": results}],
    }


def _results(track: ForeignTrack, video: ForeignVideo) -> Iterator[dict[str, Any]]:
    known: dict[str, Any] = {}
    if video.n_frames is not None:
        known["framesCount"] = video.n_frames
        if video.rate is not None:
            known["duration"] = float(video.n_frames / video.rate)
    if track.marks:
        keys = [key for stretch in track.stretches for key in _keys(track, stretch)]
        value = {**known, "sequence": keys, "labels": [track.label]}
        name, kind = "box", BOXES
    else:
        ranges = [{"start": each.first + 1, "end": each.last + 1} for each in track.stretches]
        value = {**known, "ranges": ranges, TIMES: [track.label]}
        name, kind = "time", TIMES
    yield {"id": track.id, "type": kind, "from_name": name, "to_name": "video", "value": value}
    yield from (_answer(track.id, said) for said in track.said)


def _keys(track: ForeignTrack, stretch: FrameSpan) -> Iterator[dict[str, Any]]:
    """The key frames of a stretch; the last one, made where there is none, ends it."""
    marks = track.marks_in(stretch)
    for mark in marks:
        yield _key(mark, mark.frame, enabled=mark.frame < stretch.last)
    if marks[-1].frame < stretch.last:
        yield _key(marks[-1], stretch.last, enabled=False)


def _key(mark: KeyFrameBox, frame: int, *, enabled: bool) -> dict[str, Any]:
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


def _answer(id_: str, said: ForeignAnswer) -> dict[str, Any]:
    kind, key = ("textarea", "text") if said.written else ("choices", "choices")
    return {
        "id": id_,
        "type": kind,
        "from_name": said.question,
        "to_name": "video",
        "value": {key: list(said.answers)},
    }
