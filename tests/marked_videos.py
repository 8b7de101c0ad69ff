"""Marked videos for tests of formats: drawn at random, and as other tools write them."""

import json
from fractions import Fraction

from hypothesis import strategies as st

from unreel.annotation.formats.annotated_video import (
    AnnotatedVideo,
    FieldAnswer,
    FrameSpan,
    KeyFrameBox,
    ObjectTrack,
    build_object_track,
)
from unreel.core.box import Box

RATES = [Fraction(24), Fraction(25), Fraction(30000, 1001), Fraction(60), Fraction(24000, 1001)]
# What XML can hold, and what no reader strips.
LETTERS = st.characters(
    min_codepoint=33, max_codepoint=0x2FF, exclude_categories=["Cc", "Cf", "Zs"]
)
WORDS = st.text(LETTERS, min_size=1, max_size=8)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    edges = st.integers(0, 1000)
    x = sorted(draw(st.lists(edges, min_size=2, max_size=2, unique=True)))
    y = sorted(draw(st.lists(edges, min_size=2, max_size=2, unique=True)))
    return Box(x[0] / 1000, y[0] / 1000, x[1] / 1000, y[1] / 1000)


@st.composite
def tracks(draw: st.DrawFn, *, id_: str, n_frames: int, placed: bool = True) -> ObjectTrack:
    ends = draw(st.lists(st.integers(0, n_frames - 1), min_size=2, max_size=6, unique=True))
    ends = sorted(ends)[: len(ends) // 2 * 2]
    stretches = [FrameSpan(first, last) for first, last in zip(ends[::2], ends[1::2], strict=True)]
    marks = []
    for stretch in stretches:
        frames = {stretch.first} | draw(
            st.sets(st.integers(stretch.first, stretch.last), max_size=4)
        )
        masks = st.one_of(st.just(""), st.just("https://masks.example/1.png"))
        marks += [KeyFrameBox(frame, draw(boxes()), draw(masks)) for frame in frames]
    said = draw(
        st.lists(
            st.builds(
                FieldAnswer,
                WORDS,
                st.lists(WORDS, min_size=1, max_size=2, unique=True).map(tuple),
            ),
            max_size=2,
            unique_by=lambda each: each.question,
        )
    )
    return build_object_track(id_, draw(WORDS), marks if placed else (), stretches, said=said)


@st.composite
def videos(draw: st.DrawFn) -> AnnotatedVideo:
    n_frames = draw(st.integers(2, 90))
    ids = [f"t{number}" for number in range(draw(st.integers(0, 3)))]
    return AnnotatedVideo(
        name=draw(st.sampled_from(["a.mp4", "shots/b.mp4", "c d.mov"])),
        by=draw(st.sampled_from(["", "ann", "bob@example.org"])),
        rate=draw(st.sampled_from(RATES)),
        n_frames=n_frames,
        width=draw(st.integers(16, 4096)),
        height=draw(st.integers(16, 4096)),
        tracks=tuple(draw(tracks(id_=id_, n_frames=n_frames)) for id_ in ids),
    )


BOX = 'xtl="10" ytl="20" xbr="30" ybr="40"'


def cvat(*inside: str, size: int = 100) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta><task>'
        f"<id>7</id><name>task</name><size>{size}</size><owner><username>ann</username></owner>"
        "<original_size><width>100</width><height>200</height></original_size>"
        f"<source>a.mp4</source></task></meta>{''.join(inside)}</annotations>"
    )


def labelbox(**annotations: object) -> str:
    label = {
        "label_kind": "Video",
        "id": "l1",
        "label_details": {"created_by": "ann@example.org"},
        "annotations": {"frames": {}, "segments": {}, "key_frame_feature_map": {}} | annotations,
    }
    facts = {"frame_count": 100, "frame_rate": 29.97, "width": 100, "height": 200}
    return json.dumps(
        {
            "data_row": {"id": "r1", "external_id": "a.mp4"},
            "media_attributes": facts,
            "projects": {"p": {"labels": [label]}},
        }
    )


def studio(*results: object, **about: object) -> str:
    data = {"video": "/data/local-files/?d=set/a.mp4", "fps": "30000/1001"}
    annotation = {"id": 5, "completed_by": 3, "result": results} | about
    return json.dumps([{"id": 1, "data": data, "annotations": [annotation]}])


def region(*keys: dict[str, object], id_: str = "r") -> dict[str, object]:
    value = {"framesCount": 100, "duration": 3.3366, "sequence": keys, "labels": ["hand"]}
    return {"id": id_, "type": "videorectangle", "from_name": "box", "value": value}


def key(frame: int, **more: object) -> dict[str, object]:
    return {"frame": frame, "enabled": True, "x": 10, "y": 10, "width": 20, "height": 10} | more
