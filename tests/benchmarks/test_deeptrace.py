"""DeepTraceReward at full size, and its damaged rows."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.census import take_census
from pace import slowness
from unreel.benchmarks.deeptrace import (
    FIELDS,
    parse_deeptrace_row,
    parse_trace_categories,
    read_deeptrace_benchmark,
)
from unreel.benchmarks.entry import Entry, Rejected
from unreel.core.box import Box
from unreel.core.clip import Generated
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import Category

FAKE, REAL = Label.GENERATED, Label.REAL
ROW: dict[str, Any] = {
    "video_id": "x",
    "video_path": "videos/x.mp4",
    "video_type": "fake_video",
    "video_source": "Pika 1.5",
    "split": "test",
    "video_prompt": "a cat",
    "video_width": 1000,
    "video_height": 500,
    "video_frame_rate": 29.97,
    "video_frame_count": 150,
    "video_duration": 5.005,
    "faketrace_bbox": {"left": -10, "top": 50, "width": 510, "height": 9999},
    "faketrace_first_frame": 30,
    "faketrace_last_frame": 59,
    "faketrace_duration": 1.0,
    "faketrace_explanations": "  the tail splits ",
    "faketrace_check_applies": ["Object Splitting"],
}


def read(tmp_path: Path, rows: object) -> tuple[list[Entry], list[Rejected]]:
    (tmp_path / "all_data.json").write_text(json.dumps(rows), encoding="utf-8")
    found = list(read_deeptrace_benchmark(tmp_path))
    entries = [row for row in found if isinstance(row, Entry)]
    return entries, [row for row in found if isinstance(row, Rejected)]


def test_videos_and_units_are_those_of_the_paper(deeptrace: Path) -> None:
    census = take_census(read_deeptrace_benchmark(deeptrace))
    assert census.entries == {
        ("train", FAKE): 2654,
        ("val", FAKE): 332,
        ("test", FAKE): 332,
        ("train", REAL): 2654,
        ("val", REAL): 332,
        ("test", REAL): 332,
    }
    assert census.units == {
        ("train", FAKE): 3460,
        ("val", FAKE): 434,
        ("test", FAKE): 440,
        ("train", REAL): 2654,
        ("val", REAL): 332,
        ("test", REAL): 332,
    }
    assert (census.n_entries, census.n_units, census.n_rejected) == (6636, 7652, 0)


def test_as_many_traces_are_explained_and_tagged_as_in_the_paper(deeptrace: Path) -> None:
    entries = [row for row in read_deeptrace_benchmark(deeptrace) if isinstance(row, Entry)]
    traces = [trace for entry in entries for trace in entry.traces]
    assert len(traces) == 4334
    assert round(100 * sum(bool(trace.explanation) for trace in traces) / 4334, 1) == 62.7
    assert round(100 * sum(bool(trace.categories) for trace in traces) / 4334, 1) == 60.9
    assert {kind for trace in traces for kind in trace.categories} == set(Category)


@pytest.mark.alone
def test_7652_rows_are_read_within_a_second_and_a_half(deeptrace: Path) -> None:
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        assert sum(1 for _ in read_deeptrace_benchmark(deeptrace)) == 6636
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 1.5 * slowness()


def test_the_traces_of_one_video_keep_the_order_of_their_rows(tmp_path: Path) -> None:
    other = ROW | {"video_id": "y", "video_path": "videos/y.mp4"}
    rows = [ROW | {"faketrace_explanations": "one"}, other, ROW | {"faketrace_explanations": "two"}]
    entries, rejected = read(tmp_path, rows)
    assert [entry.name for entry in entries] == ["x", "y"]
    assert [trace.explanation for trace in entries[0].traces] == ["one", "two"]
    assert entries[0].n_units == 2
    assert not rejected


def test_a_box_in_pixels_is_clipped_to_the_frame() -> None:
    (trace,) = parse_deeptrace_row(ROW).traces
    assert trace.track[0].box == Box(0.0, 0.1, 0.5, 1.0)


def test_a_trace_starts_at_first_frame_over_rate_and_ends_after_its_last_frame() -> None:
    (trace,) = parse_deeptrace_row(ROW).traces
    # 30 / 29.97 = 1.001001.. s; frame 59 is on screen until 60 / 29.97 = 2.002002.. s.
    assert trace.span == TimeSpan(1_001_001, 2_002_002)
    assert trace.track[0].at_us == 1_001_001


def test_a_row_says_all_that_the_source_says() -> None:
    entry = parse_deeptrace_row(ROW)
    assert entry.origin == Generated("Pika 1.5")
    assert (entry.split, entry.prompt, entry.location) == ("test", "a cat", "videos/x.mp4")
    assert (entry.facts.width, entry.facts.height, entry.facts.n_frames) == (1000, 500, 150)
    assert entry.facts.duration_us == 5_005_000
    assert entry.traces[0].explanation == "the tail splits"


def test_a_trace_without_a_box_has_no_place() -> None:
    (trace,) = parse_deeptrace_row(ROW | {"faketrace_bbox": None}).traces
    assert trace.track == ()


@pytest.mark.parametrize(
    ("tags", "kinds"),
    [
        (["Liquid Motion"], {Category.OTHER}),
        (["Weird Motion"], {Category.OBJECT_TRAJECTORY}),
        (["Object Disappearance"], {Category.OBJECT_DISAPPEARANCE}),
        (["Sudden appearance"], {Category.REDUNDANT_OBJECT}),
        (["Background Distortion", "Shape Distortion"],
         {Category.BACKGROUND_DISTORTION, Category.OBJECT_DISTORTION}),
        (["never heard of"], {Category.OTHER}),
        (["", "  "], set()),
        ([], set()),
        (None, set()),
        ("Object Merging", {Category.OBJECT_MERGING}),
    ],
)  # fmt: skip
def test_raw_tags_become_categories(tags: object, kinds: set[Category]) -> None:
    assert parse_trace_categories(tags) == kinds


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"video_path": "../../etc/passwd"}, "inside the benchmark"),
        ({"video_path": "/videos/x.mp4"}, "relative"),
        ({"video_id": ""}, "video_id"),
        ({"video_type": "cartoon"}, "label"),
        ({"split": "holdout"}, "split"),
        ({"video_frame_rate": 0}, "above zero"),
        ({"video_frame_rate": None}, "frame rate"),
        ({"video_width": None}, "size of its frame"),
        ({"faketrace_first_frame": None}, "faketrace_first_frame"),
        ({"faketrace_last_frame": 12}, "span"),
        ({"faketrace_bbox": [1, 2, 3, 4]}, "faketrace_bbox"),
        ({"faketrace_bbox": {"left": 1}}, "faketrace_bbox top"),
        ({"faketrace_bbox": {"left": 2000, "top": 0, "width": 5, "height": 5}}, "box"),
        ({"faketrace_bbox": {"left": 9, "top": 9, "width": -5, "height": 5}}, "box"),
        ({"faketrace_explanations": ["x"]}, "faketrace_explanations"),
        ({"faketrace_check_applies": {"a": 1}}, "faketrace_check_applies"),
        ({"faketrace_explanations": "\ud800"}, "UTF-8"),
    ],
)
def test_a_damaged_row_is_rejected_and_spares_the_others(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    sound = ROW | {"video_id": "sound", "video_path": "videos/sound.mp4"}
    entries, rejected = read(tmp_path, [ROW | change, sound])
    assert [entry.name for entry in entries] == ["sound"]
    assert len(rejected) == 1
    assert why in rejected[0].why


def test_a_damaged_row_leaves_the_other_traces_of_its_video(tmp_path: Path) -> None:
    entries, rejected = read(tmp_path, [ROW, ROW | {"faketrace_last_frame": None}, ROW])
    assert [len(entry.traces) for entry in entries] == [2]
    assert [row.name for row in rejected] == ["x"]


@pytest.mark.parametrize(
    "change",
    [
        {"split": "train"},
        {"video_source": "Sora"},
        {"video_id": "z"},
        {"video_path": "videos/z.mp4"},
        {"video_type": "real_video"},
    ],
)
def test_a_row_that_contradicts_an_earlier_one_is_rejected(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    entries, rejected = read(tmp_path, [ROW, ROW | change])
    assert len(entries) == len(rejected) == 1


def test_a_second_row_of_a_real_video_is_rejected(tmp_path: Path) -> None:
    real = ROW | {"video_type": "real_video"}
    entries, rejected = read(tmp_path, [real, real])
    assert len(entries) == len(rejected) == 1


@pytest.mark.parametrize("content", ["", "{", "{}", "[" * 100_000, "[" + "9" * 5000 + "]"])
def test_a_table_that_is_no_list_cannot_be_read(tmp_path: Path, content: str) -> None:
    (tmp_path / "all_data.json").write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match="Fetch it again"):
        list(read_deeptrace_benchmark(tmp_path))


def test_a_missing_table_says_where_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="Name the folder that contains it"):
        list(read_deeptrace_benchmark(tmp_path))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
LIKELY_VALUES = JSON_VALUES | st.sampled_from(
    [0, 1, 30, 29.97, 1280, "1280", "", "test", "fake_video"]
)
BOXES = st.dictionaries(st.sampled_from(["left", "top", "width", "height"]), LIKELY_VALUES)
CHANGES = st.dictionaries(st.sampled_from(sorted({*ROW, *FIELDS.values()})), LIKELY_VALUES | BOXES)


@given(JSON_VALUES | CHANGES.map(lambda change: ROW | change) | CHANGES)
def test_any_row_becomes_an_entry_or_is_refused(row: object) -> None:
    try:
        entry = parse_deeptrace_row(row)
    except InvalidValueError:
        return
    assert isinstance(entry, Entry)
    assert entry.name


@given(st.lists(JSON_VALUES | CHANGES.map(lambda change: ROW | change), max_size=4))
def test_any_list_of_rows_is_read_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, rows: list[object]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    entries, rejected = read(folder, rows)
    units = sum(entry.n_units for entry in entries)
    assert units + len(rejected) == len(rows)
