"""Tables are read row by row, whatever their bytes."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.tables import read_table_column_names, read_table_rows
from unreel.core.errors import MissingExtraError, UnreadableSourceError

Write = Callable[[str, list[dict[str, Any]]], Path]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_the_three_kinds_of_table_give_the_same_rows(write_rows: Write, name: str) -> None:
    rows = [{"a": "1", "b": "x, y"}, {"a": "2", "b": 'a "word"\nmore'}]
    path = write_rows(name, rows)
    assert list(read_table_rows(path)) == rows
    assert read_table_column_names(path) == ("a", "b")


def test_tabs_part_the_cells_of_tsv(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('a\tb\n1\t"x\ty"\n2, 3\t\n', encoding="utf-8")
    assert list(read_table_rows(tmp_path / "t.tsv")) == [
        {"a": "1", "b": "x\ty"},
        {"a": "2, 3", "b": ""},
    ]
    assert read_table_column_names(tmp_path / "t.tsv") == ("a", "b")


@pytest.mark.parametrize(
    ("name", "header", "words"),
    [("t.csv", "a;b", "Put commas in place of ';'"), ("t.tsv", "a,b", "Put tabs in place of ','")],
)
def test_cells_with_another_mark_between_them_are_told(
    tmp_path: Path, name: str, header: str, words: str
) -> None:
    (tmp_path / name).write_text(f"{header}\n1\n", encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match=words):
        read_table_column_names(tmp_path / name)


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    for name, content in (("t.csv", b"a,b\n1,2\n"), ("t.jsonl", b'{"a": "1", "b": "2"}\n')):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content)
        assert list(read_table_rows(tmp_path / name)) == [{"a": "1", "b": "2"}]


def test_utf_16_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(UnreadableSourceError, match="Save the table as UTF-8"):
        list(read_table_rows(tmp_path / "t.csv"))


def test_a_short_csv_row_is_silent_about_its_last_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1\n\n2,3\n", encoding="utf-8")
    assert list(read_table_rows(tmp_path / "t.csv")) == [
        {"a": "1", "b": None},
        {"a": "2", "b": "3"},
    ]


def test_a_csv_row_with_too_many_cells_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2,3\n4,5\n", encoding="utf-8")
    rejected, row = read_table_rows(tmp_path / "t.csv")
    assert isinstance(rejected, Rejected)
    assert rejected.name == "row 2"
    assert row == {"a": "4", "b": "5"}


def test_an_endless_csv_cell_is_rejected_and_the_end_is_reached(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1," + "x" * 200_000 + "\n4,5\n", encoding="utf-8")
    rejected, row = read_table_rows(tmp_path / "t.csv")
    assert isinstance(rejected, Rejected)
    assert row == {"a": "4", "b": "5"}


@pytest.mark.parametrize("line", ["{", "[1]", "3", '"x"', "[" * 100_000, "\udcff"])
def test_a_damaged_line_of_json_is_rejected(tmp_path: Path, line: str) -> None:
    content = line.encode("utf-8", "surrogateescape") + b'\n\n{"a": 1}\n'
    (tmp_path / "t.jsonl").write_bytes(content)
    rejected, row = read_table_rows(tmp_path / "t.jsonl")
    assert isinstance(rejected, Rejected)
    assert rejected.name == "row 1"
    assert row == {"a": 1}


@pytest.mark.parametrize("content", ["", "\n\n", "a,a\n1,2\n", ",,\n1,2,3\n"])
def test_a_csv_without_a_usable_header_cannot_be_read(tmp_path: Path, content: str) -> None:
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableSourceError):
        read_table_column_names(tmp_path / "t.csv")


def test_what_is_no_table_or_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match=r"Give one of \.csv"):
        read_table_rows(tmp_path / "t.xlsx")
    with pytest.raises(UnreadableSourceError, match="No such file"):
        list(read_table_rows(tmp_path / "t.csv"))
    (tmp_path / "t.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(UnreadableSourceError, match="not a Parquet file"):
        list(read_table_rows(tmp_path / "t.parquet"))


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"unreel\[eval\]"):
        list(read_table_rows(tmp_path / "t.parquet"))


def test_media_inside_parquet_is_not_loaded(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"video": {"bytes": b"x" * 1000, "path": "a.mp4"}, "raw": b"x", "label": "real"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert list(read_table_rows(tmp_path / "t.parquet")) == [
        {"video": {"path": "a.mp4"}, "label": "real"}
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_large_table_takes_little_memory(write_rows: Write, name: str) -> None:
    path = write_rows(
        name, [{"file": f"videos/{n:06d}.mp4", "label": "real"} for n in range(30_000)]
    )
    assert path.stat().st_size > 700_000
    tracemalloc.start()
    n_rows = sum(1 for _ in read_table_rows(path))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_rows == 30_000
    assert peak_bytes < 150_000


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_be_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for name, head in (("t.csv", b"file,label\n"), ("t.jsonl", b"")):
        (folder / name).write_bytes(head + content)
        for row in read_table_rows(folder / name):
            assert isinstance(row, dict | Rejected)
