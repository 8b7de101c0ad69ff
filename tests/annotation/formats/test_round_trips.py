"""A track survives each way there and back, and every chain of formats, to the frame."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.interfaces.drawn_boxes import box_on
from marked_videos import tracks, videos
from unreel.annotation.formats.annotated_video import (
    AnnotatedVideo,
    ObjectTrack,
    VideoPropertyDefaults,
)
from unreel.annotation.formats.conversion import READERS, WRITERS, AnnotationFormat
from unreel.annotation.formats.untrusted_input import clip_box_to_frame
from unreel.annotation.interfaces.screens import ScreenKeyFrame
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.output_files import OutputDirectory

OTHERS = [AnnotationFormat.CVAT, AnnotationFormat.LABELBOX, AnnotationFormat.LABEL_STUDIO]
PIXEL = 1e-5
"""Of a pixel, written with six decimals."""


def there_and_back(video: AnnotatedVideo, form: AnnotationFormat) -> AnnotatedVideo:
    with TemporaryDirectory() as place:
        rejected = list(WRITERS[form].load()([video], OutputDirectory(Path(place))))
        assert rejected == []
        (file,) = Path(place).iterdir()
        told = VideoPropertyDefaults(rate=video.rate, width=video.width, height=video.height)
        (read,) = READERS[form].load()(file, told)
    assert not isinstance(read, Rejected), str(read)
    return read


def assert_near(one: Box | None, other: Box | None, *, sides: tuple[int, int]) -> None:
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        across = max(abs(one.x0 - other.x0), abs(one.x1 - other.x1)) * sides[0]
        down = max(abs(one.y0 - other.y0), abs(one.y1 - other.y1)) * sides[1]
        assert max(across, down) < PIXEL


def assert_same(one: ObjectTrack, other: ObjectTrack, video: AnnotatedVideo) -> None:
    assert (one.id, one.label, one.stretches) == (other.id, other.label, other.stretches)
    assert [m.mask for m in one.marks] == [m.mask for m in other.marks]
    assert {s.question: s.answers for s in one.said} == {s.question: s.answers for s in other.said}
    for frame in range(-1, video.require_frames() + 1):
        assert one.seen_at(frame) == other.seen_at(frame)
        assert_near(one.box_at(frame), other.box_at(frame), sides=video.require_size())


@pytest.mark.parametrize("form", OTHERS)
@given(video=videos())
@settings(deadline=None, max_examples=40)
def test_a_track_survives_each_round_trip_to_the_frame(
    form: AnnotationFormat, video: AnnotatedVideo
) -> None:
    read = there_and_back(video, form)
    assert (read.name, read.by, read.rate) == (video.name, video.by, video.rate)
    assert (read.width, read.height, read.n_frames) == (video.width, video.height, video.n_frames)
    assert len(read.tracks) == len(video.tracks)
    back = {track.id: track for track in read.tracks}
    for track in video.tracks:
        assert_same(track, back[track.id], video)


@given(video=videos(), chain=st.permutations(OTHERS))
@settings(deadline=None, max_examples=40)
def test_a_track_survives_a_chain_of_all_formats(
    video: AnnotatedVideo, chain: Sequence[AnnotationFormat]
) -> None:
    read = video
    for form in chain:
        read = there_and_back(read, form)
    back = {track.id: track for track in read.tracks}
    for track in video.tracks:
        assert_same(track, back[track.id], video)


@given(video=videos())
@settings(deadline=None, max_examples=40)
def test_each_stretch_of_a_track_survives_as_a_trace_to_the_frame(video: AnnotatedVideo) -> None:
    if not video.tracks:
        return
    with TemporaryDirectory() as place:
        assert (
            list(WRITERS[AnnotationFormat.UNREEL].load()([video], OutputDirectory(Path(place))))
            == []
        )
        file = Path(place) / "metadata.jsonl"
        (read,) = READERS[AnnotationFormat.UNREEL].load()(file, VideoPropertyDefaults())
    stretches = [(track, stretch) for track in video.tracks for stretch in track.stretches]
    for (track, stretch), back in zip(stretches, read.tracks, strict=True):
        assert back.stretches == (stretch,)
        for frame in range(stretch.first, stretch.last + 1):
            assert_near(back.box_at(frame), track.box_at(frame), sides=video.require_size())


@pytest.mark.parametrize("form", [AnnotationFormat.LABELBOX, AnnotationFormat.LABEL_STUDIO])
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_a_time_without_a_place_survives_where_formats_have_room_for_it(
    form: AnnotationFormat, data: st.DataObject
) -> None:
    track = data.draw(tracks(id_="t", n_frames=50, placed=False))
    video = AnnotatedVideo(name="a", n_frames=50, width=100, height=50, tracks=(track,))
    (back,) = there_and_back(video, form).tracks
    assert (back.label, back.stretches, back.marks) == (track.label, track.stretches, ())
    answers = {said.question: set(said.answers) for said in track.said}
    assert {said.question: set(said.answers) for said in back.said} == answers


@given(track=tracks(id_="t", n_frames=40))
@settings(deadline=None, max_examples=40)
def test_written_key_frames_mean_on_a_screen_what_they_mean_here(track: ObjectTrack) -> None:
    video = AnnotatedVideo(name="a", n_frames=40, width=100, height=50, tracks=(track,))
    with TemporaryDirectory() as place:
        list(WRITERS[AnnotationFormat.LABEL_STUDIO].load()([video], OutputDirectory(Path(place))))
        (task,) = json.loads((Path(place) / "label-studio.json").read_text())
    value = task["annotations"][0]["result"][0]["value"]
    keys = [
        ScreenKeyFrame(
            frame=key["frame"],
            enabled=key["enabled"],
            box=clip_box_to_frame(
                key["x"] / 100,
                key["y"] / 100,
                (key["x"] + key["width"]) / 100,
                (key["y"] + key["height"]) / 100,
            ),
        )
        for key in value["sequence"]
    ]
    for frame in range(40):
        assert_near(box_on(keys, frame + 1), track.box_at(frame), sides=(100, 50))
