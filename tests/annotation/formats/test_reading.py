"""What files of other tools say, as those tools write them, and what is refused."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marked_videos import BOX, cvat, key, labelbox, region, studio
from unreel.annotation.formats.annotated_video import (
    AnnotatedVideo,
    FieldAnswer,
    FrameSpan,
    VideoPropertyDefaults,
)
from unreel.annotation.formats.conversion import READERS, AnnotationFormat, detect_annotation_format
from unreel.annotation.formats.untrusted_input import parse_frame_rate
from unreel.benchmarks.entry import Rejected
from unreel.core.box import Box
from unreel.core.errors import UnreadableSourceError


def read(
    folder: Path, text: str, form: AnnotationFormat, told: VideoPropertyDefaults | None = None
) -> list[AnnotatedVideo | Rejected]:
    file = folder / "file"
    file.write_text(text)
    return list(READERS[form].load()(file, told or VideoPropertyDefaults()))


def one(found: list[AnnotatedVideo | Rejected]) -> AnnotatedVideo:
    (video,) = found
    assert isinstance(video, AnnotatedVideo), str(video)
    return video


def test_cvat_counts_frames_from_0_and_an_outside_frame_is_the_first_unseen(tmp_path: Path) -> None:
    track = (
        '<track id="0" label="hand" source="manual">'
        f'<box frame="3" keyframe="1" outside="0" occluded="0" {BOX}>'
        '<attribute name="kind">left</attribute></box>'
        f'<box frame="4" keyframe="0" outside="0" occluded="0" {BOX}/>'
        f'<box frame="8" keyframe="1" outside="1" occluded="0" {BOX}/></track>'
    )
    video = one(read(tmp_path, cvat(track), AnnotationFormat.CVAT))
    (found,) = video.tracks
    assert found.stretches == (FrameSpan(3, 7),)
    assert [mark.frame for mark in found.marks] == [3]
    assert found.box_at(7) == Box(0.1, 0.1, 0.3, 0.2)
    assert found.said == (FieldAnswer("kind", ("left",)),)
    assert (video.name, video.by, video.n_frames, video.width) == ("a.mp4", "ann", 100, 100)


def test_a_cvat_track_without_an_end_runs_to_the_last_frame(tmp_path: Path) -> None:
    track = f'<track id="0" label="x"><box frame="3" {BOX}/></track>'
    (found,) = one(read(tmp_path, cvat(track, size=50), AnnotationFormat.CVAT)).tracks
    assert found.stretches == (FrameSpan(3, 49),)


def test_a_mask_of_cvat_becomes_its_box_and_is_referred_to(tmp_path: Path) -> None:
    track = (
        '<track id="4" label="x"><mask frame="1" keyframe="1" outside="0" rle="1,2" left="10" '
        'top="20" width="30" height="40"/><mask frame="2" keyframe="1" outside="1" rle="1" '
        'left="10" top="20" width="30" height="40"/></track>'
    )
    (found,) = one(read(tmp_path, cvat(track), AnnotationFormat.CVAT)).tracks
    assert found.box_at(1) == Box(0.1, 0.1, 0.4, 0.3)
    assert found.marks[0].mask == "file#track=4&frame=1"
    assert found.stretches == (FrameSpan(1, 1),)


def test_tracks_of_a_project_go_to_their_own_task(tmp_path: Path) -> None:
    tasks = "".join(
        f"<task><id>{n}</id><name>v{n}</name><size>10</size><original_size><width>100</width>"
        "<height>100</height></original_size></task>"
        for n in (1, 2)
    )
    tracks = "".join(
        f'<track id="{n}" label="x" task_id="{n}"><box frame="0" {BOX}/></track>' for n in (1, 2)
    )
    text = (
        f"<annotations><meta><project><tasks>{tasks}</tasks></project></meta>{tracks}</annotations>"
    )
    found = read(tmp_path, text, AnnotationFormat.CVAT)
    assert [(v.name, v.tracks[0].id) for v in found if isinstance(v, AnnotatedVideo)] == [
        ("v1", "1"),
        ("v2", "2"),
    ]


@pytest.mark.parametrize(
    ("track", "why"),
    [
        ('<track id="0" label="x"><points frame="1" points="1,2"/></track>', "a points has no box"),
        (f'<track id="0" label="x"><box frame="1.5" {BOX}/></track>', "whole number"),
        (f'<track id="0" label="x"><box frame="1" rotation="30" {BOX}/></track>', "turned"),
        (f'<track id="0" label="x"><box frame="101" {BOX}/></track>', "of a video of 100"),
        ('<track id="0" label="x"><box frame="1" xtl="5"/></track>', "Write a number"),
        (
            '<track id="0" label="x"><box frame="1" xtl="nan" ytl="1" xbr="2" ybr="3"/></track>',
            "Write a number",
        ),
        (
            '<track id="0" label="x"><box frame="1" xtl="3" ytl="1" xbr="2" ybr="3"/></track>',
            "no area",
        ),
        ('<track id="0" label="x"></track>', "no track"),
        (
            f'<track id="0" label="x"><box frame="1" {BOX}/><box frame="1" {BOX}/></track>',
            "two key",
        ),
        ('<image id="0" name="i.png"/>', "CVAT for video 1.1"),
    ],
)
def test_a_broken_part_of_cvat_is_a_row_and_the_rest_is_read(
    tmp_path: Path, track: str, why: str
) -> None:
    good = f'<track id="9" label="x"><box frame="1" {BOX}/></track>'
    video, rejected = read(tmp_path, cvat(track, good), AnnotationFormat.CVAT)
    assert isinstance(video, AnnotatedVideo)
    assert [found.id for found in video.tracks] == ["9"]
    assert isinstance(rejected, Rejected)
    assert why in rejected.why


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE a [<!ENTITY b "bbbb">]>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd">',
        '<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1/x"> %p;]>',
    ],
)
def test_a_document_type_is_refused_before_anything_of_it_is_used(
    tmp_path: Path, head: str
) -> None:
    (found,) = read(tmp_path, f"{head}<annotations>&b;</annotations>", AnnotationFormat.CVAT)
    assert isinstance(found, Rejected)
    assert "document type" in found.why


def test_xml_that_ends_too_early_or_too_deep_is_a_row(tmp_path: Path) -> None:
    whole = cvat(f'<track id="1" label="x"><box frame="1" {BOX}/></track>')
    video, broken = read(tmp_path, whole[:-5], AnnotationFormat.CVAT)
    assert isinstance(video, AnnotatedVideo)
    assert len(video.tracks) == 1
    assert "no XML" in str(broken)
    assert "nested deeper" in str(
        read(tmp_path, "<annotations>" + "<a>" * 99, AnnotationFormat.CVAT)[-1]
    )


def test_labelbox_counts_frames_from_1_and_segments_hold_their_last(tmp_path: Path) -> None:
    held = {
        "name": "hand",
        "annotation_kind": "VideoBoundingBox",
        "bounding_box": {"top": 20.0, "left": 10.0, "height": 20.0, "width": 20.0},
        "classifications": [{"name": "kind", "radio_answer": {"name": "left"}}],
    }
    moved = held | {"bounding_box": {"top": 20.0, "left": 20.0, "height": 20.0, "width": 20.0}}
    text = labelbox(
        frames={
            "13": {"objects": {"f": held}},
            "14": {"objects": {"f": held}},
            "18": {"objects": {"f": held}},
            "20": {"objects": {"f": moved}},
        },
        segments={"f": [[13, 14], [18, 20]]},
        key_frame_feature_map={"f": {"13": True, "14": False, "18": False, "20": True}},
    )
    video = one(read(tmp_path, text, AnnotationFormat.LABELBOX))
    (track,) = video.tracks
    assert track.stretches == (FrameSpan(12, 13), FrameSpan(17, 19))
    assert [mark.frame for mark in track.marks] == [12, 17, 19]
    halfway = track.box_at(18)
    assert halfway is not None
    assert halfway.iou(Box(0.15, 0.1, 0.35, 0.2)) > 1 - 1e-9
    assert track.said == (FieldAnswer("kind", ("left",)),)
    assert (video.rate, video.by) == (Fraction(30000, 1001), "ann@example.org")


def test_a_mask_of_labelbox_keeps_its_address_and_its_time(tmp_path: Path) -> None:
    mask = {"name": "x", "annotation_kind": "VideoSegmentationMask", "mask": {"url": "https://m/1"}}
    text = labelbox(
        frames={"2": {"objects": {"f": mask}}, "3": {"objects": {"f": mask}}},
        segments={"f": [[2, 3]]},
        key_frame_feature_map={"f": [2]},
    )
    (track,) = one(read(tmp_path, text, AnnotationFormat.LABELBOX)).tracks
    assert track.stretches == (FrameSpan(1, 2),)
    assert track.marks[0].mask == "https://m/1"
    assert track.box_at(1) is None


def test_several_labels_of_one_row_are_several_peoples_videos(tmp_path: Path) -> None:
    row = json.loads(labelbox())
    row["projects"]["p"]["labels"] *= 2
    assert len(read(tmp_path, json.dumps([row]), AnnotationFormat.LABELBOX)) == 2


def test_label_studio_counts_from_1_ignores_time_and_ends_inclusively(tmp_path: Path) -> None:
    first, last = key(1, time=0.05), key(5, time=0.2, enabled=False, x=50)
    choice = {"id": "r", "type": "choices", "from_name": "kind", "value": {"choices": ["a", "b"]}}
    whole = {"id": "q", "type": "textarea", "from_name": "why", "value": {"text": ["odd"]}}
    text = studio(region(first, last, key(9)), choice, whole)
    video = one(read(tmp_path, text, AnnotationFormat.LABEL_STUDIO))
    (track,) = video.tracks
    assert track.stretches == (FrameSpan(0, 4), FrameSpan(8, 99))
    halfway = track.box_at(2)
    assert halfway is not None
    assert halfway.iou(Box(0.3, 0.1, 0.5, 0.2)) > 1 - 1e-9
    assert track.said == (FieldAnswer("kind", ("a", "b")),)
    assert video.said == (FieldAnswer("why", ("odd",), written=True),)
    assert (video.name, video.by, video.rate) == ("set/a.mp4", "3", Fraction(30000, 1001))


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (region(key(0)), "count from 1"),
        (region(key(101)), "frame 100 of a video of 100"),
        (region(key(1, x="left")), "Write a number"),
        (region(key(1, rotation=20)), "turned"),
        (region(key(1, width=0)), "no area"),
        (region(), "Write key frames"),
        ({"id": "b", "type": "brushlabels", "value": {}}, "brushlabels"),
        ([], "Write an object"),
    ],
)
def test_a_broken_result_of_label_studio_is_a_row(tmp_path: Path, result: object, why: str) -> None:
    text = studio(result, region(key(1), id_="good"))
    rejected, video = read(tmp_path, text, AnnotationFormat.LABEL_STUDIO)
    assert isinstance(video, AnnotatedVideo)
    assert [track.id for track in video.tracks] == ["good"]
    assert why in str(rejected)


@pytest.mark.parametrize("form", list(AnnotationFormat))
@given(data=st.binary(max_size=400))
@settings(deadline=None, max_examples=50)
def test_no_bytes_make_a_reader_raise(
    tmp_path_factory: pytest.TempPathFactory, form: AnnotationFormat, data: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "bytes"
    file.write_bytes(data)
    for found in READERS[form].load()(file, VideoPropertyDefaults()):
        assert isinstance(found, Rejected | AnnotatedVideo)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "data",
                    "annotations",
                    "result",
                    "value",
                    "sequence",
                    "frame",
                    "type",
                    "id",
                    "1",
                    "data_row",
                    "projects",
                    "labels",
                    "frames",
                    "objects",
                    "segments",
                    "ranges",
                    "key_frame_feature_map",
                    "bounding_box",
                    "traces",
                    "span",
                    "classifications",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@pytest.mark.parametrize(
    "form", [AnnotationFormat.LABELBOX, AnnotationFormat.LABEL_STUDIO, AnnotationFormat.UNREEL]
)
@given(held=JUNK)
@settings(deadline=None, max_examples=100)
def test_no_json_makes_a_reader_raise(
    tmp_path_factory: pytest.TempPathFactory, form: AnnotationFormat, held: object
) -> None:
    file = tmp_path_factory.getbasetemp() / "junk"
    outer = {"data": {}, "annotations": [{"result": [held]}], "data_row": {}, "traces": held}
    label = {"annotations": {"frames": held, "segments": held, "key_frame_feature_map": held}}
    outer["projects"] = {"p": {"labels": [held, label]}}
    file.write_text(json.dumps([held, outer]))
    for found in READERS[form].load()(file, VideoPropertyDefaults(n_frames=9, width=9, height=9)):
        assert isinstance(found, Rejected | AnnotatedVideo)


@pytest.mark.timeout(20)
def test_a_string_without_an_end_is_one_row_and_takes_no_time(tmp_path: Path) -> None:
    for end in ("", "\\"):
        (found,) = read(tmp_path, '["' + '\\"' * 500_000 + end, AnnotationFormat.LABEL_STUDIO)
        assert "not JSON" in str(found)


def test_a_format_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "anything"
    for text, form in [
        (cvat(), AnnotationFormat.CVAT),
        (labelbox(), AnnotationFormat.LABELBOX),
        (studio(), AnnotationFormat.LABEL_STUDIO),
        ('{"file_name": "a.mp4"}', AnnotationFormat.UNREEL),
    ]:
        file.write_text("\ufeff\n" + text if form is not AnnotationFormat.CVAT else text)
        assert detect_annotation_format(file) is form
    for text in ("", "hello", "[1]", "PK\x03\x04"):
        file.write_text(text)
        with pytest.raises(UnreadableSourceError):
            detect_annotation_format(file)


def test_rates_that_tools_round_are_the_broadcast_ones() -> None:
    assert parse_frame_rate(29.97) == parse_frame_rate("30000/1001") == Fraction(30000, 1001)
    assert parse_frame_rate(23.976) == Fraction(24000, 1001)
    assert parse_frame_rate(25) == parse_frame_rate("25.0") == 25
    assert parse_frame_rate(12.5) == Fraction(25, 2)
    for wrong in (0, -1, "x", None, True, float("nan"), float("inf"), "1/0"):
        assert parse_frame_rate(wrong) is None
