"""Lists of clips: the columns that people use, and cells that strangers fill."""

import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.census import take_census
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.table_entries import read_clip_table
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnknownNameError, UnreadableSourceError
from unreel.core.judgement import Label, Rating

Write = Callable[[str, list[dict[str, Any]]], Path]


def only(table: Path, mapping: dict[str, str] | None = None) -> Entry:
    (entry,) = read_clip_table(table, mapping)
    assert isinstance(entry, Entry), entry
    return entry


def test_the_shared_manifest_is_a_list(shared: Path) -> None:
    rows = list(read_clip_table(shared / "clips" / "manifest.csv"))
    census = take_census(rows)
    assert census.entries == {("", Label.REAL): 57, ("", Label.GENERATED): 87}
    assert census.n_rejected == 0
    first = rows[0]
    assert isinstance(first, Entry)
    assert first.name == "g001"
    assert first.origin == Generated("Veo")
    assert (first.group, first.licence) == ("vrt1", "CC BY-SA 4.0 (page footer)")
    assert (first.facts.width, first.facts.height, first.facts.rate) == (720, 1280, Fraction(24))
    assert first.facts.duration_us == 5_250_000
    entries = [row for row in rows if isinstance(row, Entry)]
    assert all((shared / "clips" / entry.location).is_file() for entry in entries)
    assert Counter(entry.group for entry in entries if entry.group.startswith("piq"))


@pytest.mark.parametrize("name", ["l.csv", "l.jsonl", "l.parquet"])
def test_a_row_says_who_made_the_clip_and_how(write_rows: Write, name: str) -> None:
    row = {"path": "a/b.mp4", "label": "Fake", "model": "Sora2", "setting": "text", "caption": "c"}
    entry = only(write_rows(name, [row]))
    assert entry.origin == Generated("Sora2", "text")
    assert (entry.name, entry.location, entry.prompt) == ("a/b.mp4", "a/b.mp4", "c")


def test_columns_of_other_names_are_mapped(write_rows: Write) -> None:
    table = write_rows("l.csv", [{"Clip File": "a.mp4", "kind": "real", "label": "9"}])
    entry = only(table, {"location": "Clip File", "label": "kind"})
    assert entry.origin == Real()


def test_a_later_row_of_jsonl_may_say_more(write_rows: Write) -> None:
    rows = [{"file": "a", "label": "real"}, {"file": "b", "label": "real", "score": 5}]
    first, second = read_clip_table(write_rows("l.jsonl", rows))
    assert isinstance(first, Entry)
    assert isinstance(second, Entry)
    assert first.rating is None
    assert second.rating == Rating(score=5)


def test_a_number_for_a_label_is_rejected_because_its_side_is_not_known(write_rows: Write) -> None:
    (row,) = read_clip_table(write_rows("l.csv", [{"file": "a.mp4", "label": "1"}]))
    assert isinstance(row, Rejected)
    assert "Write one of real, generated" in row.why


@pytest.mark.parametrize(
    "change",
    [
        {"file": "/etc/passwd"},
        {"file": "../../x.mp4"},
        {"file": ""},
        {"file": "a\x00.mp4"},
        {"label": ""},
        {"width": "wide"},
        {"fps": "0"},
        {"traces": "[{}]"},
        {"traces": "not json"},
        {"votes": '[{"voter": "x", "label": "maybe"}]'},
        {"score": "9"},
    ],
)
def test_a_damaged_row_is_rejected_and_spares_the_others(
    write_rows: Write, change: dict[str, str]
) -> None:
    sound = {"file": "ok.mp4", "label": "real", "width": "", "fps": "", "traces": "", "votes": "",
             "score": ""}  # fmt: skip
    rejected, entry = read_clip_table(write_rows("l.csv", [sound | change, sound]))
    assert isinstance(rejected, Rejected)
    assert isinstance(entry, Entry)


def test_bytes_that_are_no_utf_8_reject_their_row_alone(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes(b"file,label\nb\xe9b\xe9.mp4,real\nok.mp4,real\n")
    rejected, entry = read_clip_table(tmp_path / "l.csv")
    assert isinstance(rejected, Rejected)
    assert "UTF-8" in rejected.why
    assert rejected.name.isprintable()
    assert isinstance(entry, Entry)


def test_a_table_without_a_label_asks_for_one(write_rows: Write) -> None:
    with pytest.raises(UnreadableSourceError, match="label=COLUMN"):
        list(read_clip_table(write_rows("l.csv", [{"file": "a.mp4"}])))


def test_a_mapping_that_does_not_fit_is_an_error(write_rows: Write) -> None:
    table = write_rows("l.csv", [{"file": "a.mp4", "label": "real"}])
    with pytest.raises(UnknownNameError, match="Did you mean 'label'"):
        list(read_clip_table(table, {"lable": "label"}))
    with pytest.raises(UnreadableSourceError, match="Known: file, label"):
        list(read_clip_table(table, {"label": "side"}))


CELLS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
COLUMNS = ["file", "label", "name", "width", "fps", "score", "traces", "votes", "duration_s"]


@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), CELLS), min_size=1, max_size=4))
def test_any_cells_become_entries_or_rejected_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]
) -> None:
    import csv

    table = tmp_path_factory.mktemp("cells") / "l.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    assert len(list(read_clip_table(table))) == len(rows)


def test_a_list_reads_the_scores_of_three_annotators(write_rows: Write) -> None:
    row = {"file": "a.mp4", "label": "fake", "score_1": "2", "score_2": "2", "score_3": "5"}
    rated, unrated = read_clip_table(
        write_rows("l.csv", [row, row | dict.fromkeys(list(row)[2:], "")])
    )
    assert isinstance(rated, Entry)
    assert isinstance(unrated, Entry)
    assert rated.rating is not None
    assert (rated.rating.score, len(rated.ratings)) == (2, 3)
    assert unrated.rating is None


@pytest.mark.parametrize(
    ("flag", "label"),
    [("0", Label.REAL), ("1", Label.GENERATED), (" true ", Label.GENERATED), ("0.0", Label.REAL)],
)
def test_filename_and_is_fake_are_read(tmp_path: Path, flag: str, label: Label) -> None:
    table = tmp_path / "clips.csv"
    table.write_text(f"filename,is_fake\na.mp4,{flag}\n")
    (entry,) = open_benchmark(table).read()
    assert isinstance(entry, Entry)
    assert (entry.location, entry.label) == ("a.mp4", label)


@pytest.mark.parametrize(("flag", "label"), [(0, Label.REAL), (True, Label.GENERATED)])
def test_is_fake_of_a_nested_table_is_read(tmp_path: Path, flag: object, label: Label) -> None:
    table = tmp_path / "clips.jsonl"
    table.write_text(json.dumps({"filename": "a.mp4", "is_fake": flag}))
    (entry,) = open_benchmark(table).read()
    assert isinstance(entry, Entry)
    assert entry.label is label


def test_a_label_that_contradicts_is_fake_is_a_rejected_row(tmp_path: Path) -> None:
    table = tmp_path / "clips.csv"
    rows = ("a.mp4,real,0", "b.mp4,fake,1", "c.mp4,real,1", "d.mp4,,1", "e.mp4,fake,", "f.mp4,,2")
    table.write_text("\n".join(("filename,label,is_fake", *rows)))
    told = {row.name: row for row in open_benchmark(table).read()}
    labels = {name: row.label.value for name, row in told.items() if isinstance(row, Entry)}
    assert labels == {"a.mp4": "real", "b.mp4": "generated", "d.mp4": "generated"} | {
        "e.mp4": "generated"
    }
    whys = {name: row.why for name, row in told.items() if isinstance(row, Rejected)}
    assert whys == {
        "c.mp4": "is_fake cannot be '1'. The label is real: correct one of them",
        "f.mp4": "is_fake cannot be '2'. Write 1 for generated or 0 for real",
    }


def test_a_row_without_is_fake_says_what_to_write(tmp_path: Path) -> None:
    table = tmp_path / "clips.csv"
    table.write_text("filename,is_fake\na.mp4,\n")
    (row,) = open_benchmark(table).read()
    assert isinstance(row, Rejected)
    assert row.why == "is_fake cannot be ''. Write 1 for generated or 0 for real"


def test_a_known_column_goes_before_filename(tmp_path: Path) -> None:
    table = tmp_path / "clips.csv"
    table.write_text("filename,video_path,is_fake\na.mp4,sub/a.mp4,0\n")
    (entry,) = open_benchmark(table).read()
    assert isinstance(entry, Entry)
    assert entry.location == "sub/a.mp4"
