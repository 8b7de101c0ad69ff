"""Copies without a watermark, from a table to a folder and back."""

from dataclasses import replace
from pathlib import Path

import pytest

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.video_folder import write_video_folder
from unreel.core.clip import Generated

MARKED = Entry(
    name="a", location="a.mp4", origin=Generated("Sora"), cleaned="clean/a.mp4", group="g"
)


@pytest.fixture
def media(tmp_path: Path) -> Path:
    root = tmp_path / "media"
    (root / "clean").mkdir(parents=True)
    (root / "a.mp4").write_bytes(b"marked")
    (root / "clean" / "a.mp4").write_bytes(b"clean")
    return root


def test_a_written_folder_holds_both_files_and_is_read_back(media: Path, tmp_path: Path) -> None:
    plain = replace(MARKED, name="b", cleaned=None)
    n_entries, _ = write_video_folder([MARKED, plain], tmp_path / "out", root=media)
    assert n_entries == 2
    opened = open_benchmark(tmp_path / "out")
    first, second = opened
    assert isinstance(first, Entry)
    assert isinstance(second, Entry)
    assert Path(opened.find(first)).read_bytes() == b"marked"
    cleaned = opened.find_cleaned(first)
    assert cleaned is not None
    assert Path(cleaned).read_bytes() == b"clean"
    assert opened.find_cleaned(second) is None


def test_a_copy_that_is_not_there_is_refused(media: Path, tmp_path: Path) -> None:
    lost = replace(MARKED, cleaned="clean/none.mp4")
    _, refused = write_video_folder([lost], tmp_path / "out", root=media)
    assert refused == (Rejected("a", "no file at clean/none.mp4. Fetch or unpack it first"),)


def test_a_copy_in_a_folder_of_a_split_is_found_there(tmp_path: Path) -> None:
    for split in ("one", "two"):
        folder = tmp_path / split
        folder.mkdir()
        line = '{"file_name": "a.mp4", "label": "fake", "cleaned": "b.mp4"}\n'
        (folder / "metadata.jsonl").write_text(line, encoding="utf-8")
    opened = open_benchmark(tmp_path)
    entries = [row for row in opened if isinstance(row, Entry)]
    assert [entry.cleaned for entry in entries] == ["one/b.mp4", "two/b.mp4"]


def test_a_copy_may_lie_in_a_store_but_not_outside_the_folder(tmp_path: Path) -> None:
    table = tmp_path / "clips.csv"
    lines = ["file,label,cleaned", "a.mp4,fake,s3://b/a.mp4", "b.mp4,fake,../b.mp4"]
    table.write_text("\n".join(lines), encoding="utf-8")
    first, second = open_benchmark(table)
    assert isinstance(first, Entry)
    assert first.cleaned == "s3://b/a.mp4"
    assert isinstance(second, Rejected)
