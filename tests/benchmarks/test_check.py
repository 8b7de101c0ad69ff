"""A benchmark that somebody brings is told as it was understood."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.check import MAX_NAMES, OTHERS, check_benchmark
from unreel.benchmarks.entry import BenchmarkLayout
from unreel.benchmarks.examples import EXAMPLES, write_example_benchmark
from unreel.core.errors import UnreadableSourceError

Write = Callable[[str, list[dict[str, Any]]], Path]


@pytest.mark.parametrize("layout", BenchmarkLayout)
def test_the_example_of_each_layout_is_found_and_sound(
    layout: BenchmarkLayout, tmp_path: Path
) -> None:
    checked = check_benchmark(write_example_benchmark(layout, tmp_path / "example"))
    assert checked.layout == layout
    assert checked.is_sound
    assert checked.n_clips == len(EXAMPLES[layout].clips)
    assert all(not table.ignored for table in checked.tables)


def test_an_example_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(UnreadableSourceError, match="not an empty folder"):
        write_example_benchmark(BenchmarkLayout.LIST, tmp_path)


def test_columns_are_told_with_what_they_are_read_as(write_rows: Write) -> None:
    rows = [{"path": "a.mp4", "label": "real", "genrator": "Veo", "filename": "a", "x": "1"}]
    (table,) = check_benchmark(write_rows("l.csv", rows)).tables
    assert table.read == {"path": "location", "label": "label"}
    assert table.ignored == {"genrator": "generator", "filename": "", "x": ""}


def test_clips_of_one_scene_count_once_for_the_difference_that_a_benchmark_would_show(
    write_rows: Write,
) -> None:
    def row(number: int, group: str) -> dict[str, Any]:
        return {"path": f"{number}.mp4", "label": "real", "group": group}

    alone = check_benchmark(write_rows("alone.csv", [row(i, "") for i in range(60)]))
    scenes = check_benchmark(write_rows("scenes.csv", [row(i, str(i // 6)) for i in range(60)]))
    assert (alone.n_independent, scenes.n_independent) == (60, 10)
    assert alone.detectable == pytest.approx(23.3, abs=0.5)
    assert scenes.detectable is not None
    assert scenes.detectable > 2 * alone.detectable


def test_a_column_that_is_mapped_is_read(write_rows: Write) -> None:
    table = write_rows("l.csv", [{"clip": "a.mp4", "kind": "fake"}])
    checked = check_benchmark(table, mapping={"location": "clip", "label": "kind"})
    assert checked.tables[0].read == {"clip": "location", "kind": "label"}
    assert checked.labels == {"generated": 1}


def test_rows_that_cannot_be_used_are_counted_by_their_reason(write_rows: Write) -> None:
    rows = [{"file": f"/{n}.mp4", "label": "real"} for n in range(3)]
    rows += [{"file": "a.mp4", "label": "1"}, {"file": "b.mp4", "label": "real"}]
    checked = check_benchmark(write_rows("l.csv", rows))
    assert (checked.n_clips, checked.n_unusable) == (1, 4)
    assert [(reason.n, reason.first.name) for reason in checked.unusable] == [
        (3, "/0.mp4"),
        (1, "a.mp4"),
    ]
    assert not checked.is_sound


def test_what_an_instrument_lacks_is_told(write_rows: Write) -> None:
    rows = [{"file": "a.mp4", "label": "real"}, {"file": "b.mp4", "label": "real"}]
    lacks = {
        each.protocol: (each.n, each.lacks)
        for each in check_benchmark(write_rows("l.csv", rows)).instruments
    }
    assert lacks["realism"][0] == 0
    assert "Add a score column" in lacks["realism"][1]
    assert "Add a traces column" in lacks["trace"][1]
    assert "all clips are real" in lacks["reality"][1]
    assert "Add a group column" in lacks["preference"][1]


def test_pairs_are_counted_as_they_would_be_asked(write_rows: Write) -> None:
    rows = [
        {"file": f"{group}{n}.mp4", "label": label, "group": group}
        for group in "xy"
        for n, label in enumerate(["real", "fake", "fake"])
        if (group, label) != ("y", "real")
    ]
    (pairs,) = [
        e for e in check_benchmark(write_rows("l.csv", rows)).instruments if e.subject == "pair"
    ]
    assert (pairs.n, pairs.lacks) == (2, "")


def test_files_that_are_not_there_are_told_and_urls_are_left_alone(write_rows: Write) -> None:
    rows = [{"file": file, "label": "real"} for file in ("gone.mp4", "https://x.example/a.mp4")]
    checked = check_benchmark(write_rows("l.csv", rows))
    assert (checked.n_not_here, checked.n_behind_urls) == (1, 1)
    assert checked.first_not_here.endswith("gone.mp4")


def test_other_layouts_that_fit_are_told(tmp_path: Path) -> None:
    write_example_benchmark(BenchmarkLayout.FOLDERS, tmp_path)
    (tmp_path / "manifest.csv").write_text("file,label\nreal/rain.mp4,real\n")
    with pytest.raises(UnreadableSourceError, match="folders or list"):
        check_benchmark(tmp_path)
    assert check_benchmark(tmp_path, "folders").could_be == (BenchmarkLayout.LIST,)


def test_a_million_names_are_not_kept(write_rows: Write) -> None:
    rows = [{"file": f"{n}.mp4", "label": "fake", "creator": f"c{n}"} for n in range(MAX_NAMES + 5)]
    creators = check_benchmark(write_rows("l.csv", rows)).creators
    assert len(creators) == MAX_NAMES + 1
    assert creators[OTHERS] == 5
