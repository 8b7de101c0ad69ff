"""Video Reality Test's folders: every clip with its twins."""

from pathlib import Path

import pytest

from benchmarks.census import take_census
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.video_reality_test import read_reality_benchmark
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnreadableSourceError
from unreel.core.judgement import Label


def make(root: Path, table: str, files: list[str]) -> Path:
    (root / "real").mkdir()
    (root / "clips.csv").write_text(table, encoding="utf-8")
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"video")
    return root


def test_149_clips_and_four_folders_give_149_times_five_entries(reality: Path) -> None:
    census = take_census(read_reality_benchmark(reality))
    assert census.entries == {("", Label.REAL): 149, ("", Label.GENERATED): 149 * 4}
    assert census.n_rejected == 0


def test_49_clips_are_easy_and_100_hard(reality: Path) -> None:
    entries = [row for row in read_reality_benchmark(reality) if isinstance(row, Entry)]
    real = [entry for entry in entries if entry.origin == Real()]
    assert [entry.difficulty for entry in real].count("easy") == 49
    assert [entry.difficulty for entry in real].count("hard") == 100


def test_a_folder_names_creator_and_setting(reality: Path) -> None:
    entries = [row for row in read_reality_benchmark(reality) if isinstance(row, Entry)]
    assert [entry.origin for entry in entries[:5]] == [
        Real(),
        Generated("Sora2", "image+text"),
        Generated("Sora2", "text"),
        Generated("StepVideo"),
        Generated("Veo3.1-Fast", "image+text"),
    ]


def test_twins_share_group_prompt_and_difficulty_and_have_their_own_names(reality: Path) -> None:
    entries = [row for row in read_reality_benchmark(reality) if isinstance(row, Entry)][:5]
    assert {entry.group for entry in entries} == {"clip-000"}
    assert {entry.prompt for entry in entries} == {"cutting soap, slowly"}
    assert entries[2].name == "Sora2/text/clip-000"
    assert entries[2].location == "Sora2/text/clip-000.mp4"
    assert len({entry.name for entry in entries}) == 5


def test_a_missing_twin_is_rejected_by_name(tmp_path: Path) -> None:
    table = "clip,difficulty,prompt\na,easy,p\nb,hard,p\n"
    make(tmp_path, table, ["real/a.mp4", "real/b.webm", "Veo/a.mov"])
    rows = list(read_reality_benchmark(tmp_path))
    assert [row.name for row in rows] == ["real/a", "Veo/a", "real/b", "Veo/b"]
    assert [row.name for row in rows if isinstance(row, Rejected)] == ["Veo/b"]


@pytest.mark.parametrize(
    "row",
    [
        "a,easy,p,too,many",
        "../a,easy,p",
        "a.mp4,easy,p",
        "x/a,easy,p",
        ",easy,p",
        "a,tricky,p",
        "a,,p",
    ],
)
def test_a_damaged_row_is_rejected(tmp_path: Path, row: str) -> None:
    make(tmp_path, f"clip,difficulty,prompt\n{row}\nb,easy,p\n", ["real/b.mp4"])
    rejected, entry = read_reality_benchmark(tmp_path)
    assert isinstance(rejected, Rejected)
    assert isinstance(entry, Entry)


def test_a_table_without_difficulty_cannot_be_read(tmp_path: Path) -> None:
    make(tmp_path, "clip,prompt\na,p\n", [])
    with pytest.raises(UnreadableSourceError, match="no column 'difficulty'"):
        list(read_reality_benchmark(tmp_path))
