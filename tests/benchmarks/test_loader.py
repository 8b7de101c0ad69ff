"""A benchmark is recognised by what lies there, or by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.census import take_census
from unreel.benchmarks.entry import BenchmarkLayout, Entry, Rejected
from unreel.benchmarks.loader import open_benchmark
from unreel.core.clip import Real
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError

Write = Callable[[str, list[dict[str, Any]]], Path]


def test_each_layout_is_found_by_itself(
    deeptrace: Path, reality: Path, tmp_path: Path, write_rows: Write
) -> None:
    assert open_benchmark(deeptrace).layout == BenchmarkLayout.DEEPTRACE
    assert open_benchmark(deeptrace / "all_data.json").root == deeptrace
    assert open_benchmark(reality).layout == BenchmarkLayout.REALITY
    assert open_benchmark(reality / "clips.csv").layout == BenchmarkLayout.REALITY
    listed = write_rows("clips.jsonl", [{"file": "a.mp4", "label": "real"}])
    assert open_benchmark(listed).layout == BenchmarkLayout.LIST
    rated = write_rows("rated.csv", [{"video": "a.mp4", "score": "3"}])
    assert open_benchmark(rated).layout == BenchmarkLayout.REALISM
    hub = write_rows("metadata.csv", [{"file_name": "a.mp4", "label": "real"}])
    assert open_benchmark(hub).layout == BenchmarkLayout.VIDEO_FOLDER
    assert open_benchmark(tmp_path).layout == BenchmarkLayout.VIDEO_FOLDER
    (tmp_path / "f" / "real").mkdir(parents=True)
    (tmp_path / "f" / "generated").mkdir()
    assert open_benchmark(tmp_path / "f").layout == BenchmarkLayout.FOLDERS


def test_several_layouts_that_fit_ask_for_a_name(shared: Path) -> None:
    with pytest.raises(UnreadableSourceError, match=r"folders or list\. Name the layout"):
        open_benchmark(shared / "clips")
    assert take_census(open_benchmark(shared / "clips", "list")).n_entries == 144
    assert take_census(open_benchmark(shared / "clips", "folders")).n_entries == 144
    assert take_census(open_benchmark(shared / "clips" / "manifest.csv")).n_entries == 144


def test_nothing_that_fits_says_what_can_be_named(tmp_path: Path, write_rows: Write) -> None:
    with pytest.raises(UnreadableSourceError, match="deeptrace, reality, realism, folders"):
        open_benchmark(tmp_path)
    table = write_rows("odd.csv", [{"clip": "a.mp4", "side": "real"}])
    with pytest.raises(UnreadableSourceError, match="--map location=clip --map label=side"):
        open_benchmark(table)
    benchmark = open_benchmark(table, mapping={"location": "clip", "label": "side"})
    (entry,) = benchmark
    assert isinstance(entry, Entry)
    assert entry.origin == Real()
    assert benchmark.find(entry) == str(tmp_path / "a.mp4")


def test_columns_that_nobody_can_guess_are_left_to_name(write_rows: Write) -> None:
    table = write_rows("odd.csv", [{"Video Path": "a", "x": "1"}])
    with pytest.raises(UnreadableSourceError, match="location='Video Path' --map label=COLUMN"):
        open_benchmark(table)


def test_a_table_called_as_that_of_another_layout_is_read_by_its_columns(
    tmp_path: Path, write_rows: Write
) -> None:
    (tmp_path / "real").mkdir()
    table = write_rows("clips.csv", [{"file": "real/a.mp4", "label": "real"}])
    assert open_benchmark(table).layout == BenchmarkLayout.LIST


@pytest.mark.parametrize("layout", ["reality", "deeptrace", "folders", "video-folder"])
def test_a_layout_named_by_mistake_is_told_with_the_one_that_fits(
    write_rows: Write, layout: str
) -> None:
    table = write_rows("mine.csv", [{"file": "real/a.mp4", "label": "real"}])
    with pytest.raises(UnreadableSourceError, match="--layout list"):
        list(open_benchmark(table, layout))


def test_a_list_named_by_mistake_is_told_with_the_folders_that_are_there(tmp_path: Path) -> None:
    for side in ("real", "generated"):
        (tmp_path / side).mkdir()
    with pytest.raises(UnreadableSourceError, match="--layout folders"):
        open_benchmark(tmp_path, "list")


def test_folders_of_other_names_are_no_sides(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="no folder real/ or generated/"):
        list(open_benchmark(tmp_path, "folders"))


@pytest.mark.parametrize("address", ["https://a.example/clips.csv", "s3://bucket/clips.csv"])
def test_an_address_is_to_be_downloaded_first(address: str) -> None:
    with pytest.raises(UnreadableSourceError, match=r"a URL, .* Download"):
        open_benchmark(Path(address))


def test_a_url_is_found_where_it_is(write_rows: Write) -> None:
    table = write_rows("l.csv", [{"file": "https://example.org/a.mp4", "label": "real"}])
    benchmark = open_benchmark(table)
    (entry,) = benchmark
    assert isinstance(entry, Entry)
    assert benchmark.find(entry) == "https://example.org/a.mp4"


def test_a_name_that_comes_twice_is_rejected_the_second_time(write_rows: Write) -> None:
    rows = [{"file": f"{n}.mp4", "name": "same", "label": "real"} for n in range(3)]
    first, *others = open_benchmark(write_rows("l.csv", rows))
    assert isinstance(first, Entry)
    assert all(isinstance(row, Rejected) for row in others)
    assert len(others) == 2


@pytest.mark.parametrize("layout", ["list", "realism"])
def test_a_folder_without_a_manifest_is_no_list(tmp_path: Path, layout: str) -> None:
    with pytest.raises(UnreadableSourceError, match=r"manifest\.csv"):
        open_benchmark(tmp_path, layout)


def test_what_cannot_be_opened_is_said(tmp_path: Path, reality: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="no such file"):
        open_benchmark(tmp_path / "nowhere")
    with pytest.raises(UnknownNameError, match="Did you mean 'folders'"):
        open_benchmark(reality, "folder")
    with pytest.raises(InvalidSettingError, match="fixed columns"):
        open_benchmark(reality, mapping={"label": "x"})


def test_a_census_counts_every_rejected_row_and_keeps_the_first(write_rows: Write) -> None:
    rows = [{"file": f"../{n}.mp4", "label": "real"} for n in range(30)]
    census = take_census(open_benchmark(write_rows("l.csv", rows)))
    assert (census.n_entries, census.n_rejected, len(census.rejected)) == (0, 30, 20)
    assert str(census.rejected[0]).startswith(
        "../0.mp4: location cannot be '../0.mp4'. Keep the path"
    )
