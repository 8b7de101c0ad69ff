"""Hugging Face video folders: what is written can be read again, and by others."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected
from unreel.benchmarks.video_folder import read_video_folder, write_video_folder
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnreadableSourceError
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

Write = Callable[[str, list[dict[str, Any]]], Path]

FULL = Entry(
    name="test clip / é",
    location="videos/test-01.MP4",
    origin=Generated("Veo", "text"),
    split="test",
    group="g1",
    prompt='a "dog"\nruns',
    difficulty="hard",
    traces=(
        Trace(
            span=TimeSpan(1_001_001, 2_000_000),
            track=(BoxAt(1_001_001, Box(0.0, 0.1, 1 / 3, 1.0)), BoxAt(1_500_000, Box(0, 0, 1, 1))),
            categories=frozenset({Category.OTHER, Category.SUDDEN_BLURRING}),
            explanation="paw melts",
        ),
        Trace(span=TimeSpan(0, 1)),
    ),
    rating=Rating(score=3, problem="p", adherence="a"),
    ratings=(Rating(score=1), Rating(score=2, problem="x"), Rating(score=5)),
    votes=(Vote("ann", Label.REAL), Vote("bob", Label.GENERATED)),
    facts=DeclaredFacts(
        width=1280, height=720, rate=Fraction(30000, 1001), n_frames=150, duration_us=5_005_000
    ),
    licence="CC BY 4.0",
    source="somewhere",
)
PLAIN = Entry(name="b", location="real/b.mp4", origin=Real())


@pytest.fixture
def media(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for entry in (FULL, PLAIN):
        (root / entry.location).parent.mkdir(parents=True, exist_ok=True)
        (root / entry.location).write_bytes(entry.name.encode())
    return root


@pytest.mark.parametrize("kind", ["link", "copy"])
def test_what_is_written_is_read_again(media: Path, tmp_path: Path, kind: Any) -> None:
    into = tmp_path / "out"
    written = write_video_folder([FULL, PLAIN], into, root=media, media=kind)
    assert written == (2, ())
    again = list(read_video_folder(into))
    assert all(isinstance(entry, Entry) for entry in again)
    first, second = again
    assert isinstance(first, Entry)
    assert isinstance(second, Entry)
    assert replace(first, location=FULL.location) == FULL
    assert replace(second, location=PLAIN.location) == PLAIN
    assert (into / first.location).read_bytes() == FULL.name.encode()
    linked = (into / first.location).stat().st_ino == (media / FULL.location).stat().st_ino
    assert linked is (kind == "link")


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.parquet"])
def test_other_kinds_of_metadata_hold_the_same(
    media: Path, tmp_path: Path, write_rows: Write, name: str
) -> None:
    write_video_folder([FULL, PLAIN], tmp_path / "out", root=media)
    lines = (tmp_path / "out" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    if name.endswith(".csv"):
        nested = ("traces", "ratings", "votes")
        rows = [row | {field: json.dumps(row[field]) for field in nested} for row in rows]
    folder = write_rows(name, rows).parent
    assert list(read_video_folder(folder)) == list(read_video_folder(tmp_path / "out"))


def test_no_word_of_a_split_is_left_in_the_names_of_media(media: Path, tmp_path: Path) -> None:
    write_video_folder([FULL, PLAIN], tmp_path / "out", root=media)
    assert [
        entry.location for entry in read_video_folder(tmp_path / "out") if isinstance(entry, Entry)
    ] == ["media/00000/00000000.mp4", "media/00000/00000001.mp4"]


def test_every_row_has_the_same_keys(media: Path, tmp_path: Path) -> None:
    write_video_folder([FULL, PLAIN], tmp_path / "out", root=media)
    lines = (tmp_path / "out" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = (list(json.loads(line)) for line in lines)
    assert first == second
    assert first[0] == "file_name"


def test_what_cannot_be_written_is_refused_and_reported(media: Path, tmp_path: Path) -> None:
    rows = [
        PLAIN,
        PLAIN,
        replace(PLAIN, name="gone", location="real/gone.mp4"),
        replace(PLAIN, name="far", location="https://example.org/x.mp4"),
        Rejected("broken", "because"),
    ]
    n_entries, refused = write_video_folder(rows, tmp_path / "out", root=media)
    assert n_entries == 1
    assert [row.name for row in refused] == ["b", "gone", "far", "broken"]
    assert all("." in row.why for row in refused[:3])


def test_a_folder_in_use_is_left_alone(media: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match="Name a new one"):
        write_video_folder([PLAIN], tmp_path / "out", root=media)


def test_a_writer_that_stops_half_way_leaves_no_metadata(media: Path, tmp_path: Path) -> None:
    def rows() -> Any:
        yield PLAIN
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_video_folder(rows(), tmp_path / "out", root=media)
    assert not (tmp_path / "out" / "metadata.jsonl").exists()


def test_metadata_in_folders_of_splits_is_read(tmp_path: Path) -> None:
    for split in ("test", "train"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "metadata.csv").write_text(
            "file_name,label\nx.mp4,real\n../x.mp4,real\n", encoding="utf-8"
        )
    rows = list(read_video_folder(tmp_path))
    entries = [row for row in rows if isinstance(row, Entry)]
    assert [(entry.name, entry.location, entry.split) for entry in entries] == [
        ("test/x.mp4", "test/x.mp4", "test"),
        ("train/x.mp4", "train/x.mp4", "train"),
    ]
    assert len(rows) == 4


def test_a_video_column_may_hold_the_path(tmp_path: Path, write_rows: Write) -> None:
    rows = [{"video": {"path": "a.mp4", "bytes": None}, "label": "real"}]
    (entry,) = read_video_folder(write_rows("metadata.jsonl", rows).parent)
    assert isinstance(entry, Entry)
    assert entry.location == "a.mp4"


def test_where_links_are_impossible_media_are_copied(
    media: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    write_video_folder([PLAIN], tmp_path / "out", root=media, media="link")
    (entry,) = read_video_folder(tmp_path / "out")
    assert isinstance(entry, Entry)
    assert (tmp_path / "out" / entry.location).read_bytes() == b"b"
