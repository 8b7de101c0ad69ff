"""`real/` and `generated/<creator>/`."""

from pathlib import Path

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.folder_layout import read_folder_benchmark
from unreel.core.clip import Generated, Real


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"video")


def test_folders_say_who_made_a_clip(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "real/a.mp4",
        "generated/Veo/b.MP4",
        "generated/Wan/text/c.webm",
        "generated/d.gif",
    )
    entries = [row for row in read_folder_benchmark(tmp_path) if isinstance(row, Entry)]
    assert {entry.location: entry.origin for entry in entries} == {
        "real/a.mp4": Real(),
        "generated/Veo/b.MP4": Generated("Veo"),
        "generated/Wan/text/c.webm": Generated("Wan", "text"),
        "generated/d.gif": Generated("unknown"),
    }


def test_the_order_is_that_of_the_paths(tmp_path: Path) -> None:
    touch(tmp_path, "real/b.mp4", "real/a.mp4", "generated/X/a.mp4")
    assert [row.name for row in read_folder_benchmark(tmp_path)] == [
        "real/a.mp4",
        "real/b.mp4",
        "generated/X/a.mp4",
    ]


def test_junk_and_other_files_are_passed_over(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "real/a.mp4",
        "real/._a.mp4",
        "real/notes.txt",
        "generated/__MACOSX/b.mp4",
        "c.mp4",
    )
    assert [row.name for row in read_folder_benchmark(tmp_path)] == ["real/a.mp4"]


def test_a_name_that_cannot_be_written_down_is_rejected(tmp_path: Path) -> None:
    touch(tmp_path, "real/new\nline.mp4", "real/ok.mp4")
    rejected, entry = read_folder_benchmark(tmp_path)
    assert isinstance(rejected, Rejected)
    assert rejected.name.isprintable()
    assert isinstance(entry, Entry)


def test_the_shared_clips_are_folders(shared: Path) -> None:
    entries = [row for row in read_folder_benchmark(shared / "clips") if isinstance(row, Entry)]
    assert sum(entry.origin == Real() for entry in entries) == 57
    assert len(entries) == 144
