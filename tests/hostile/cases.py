"""Two hundred folders that strangers could hand over, each an honest one with one thing at its worst."""

import json
import os
import shutil
import socket
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq

from hostile.worst import ADDRESSES, CELLS, DOCUMENTS, IDS, NAMES

INNOCENT = {"file_name": "innocent.mp4", "name": "innocent", "label": "real"}
HOSTILE = {
    "file_name": "hostile.mp4",
    "name": "hostile",
    "label": "generated",
    "creator": "Sora",
    "licence": "CC0-1.0",
}
Lay = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Case:
    """A hostile folder: how it is laid out of an honest one, and what must still be had from it."""

    name: str
    lay: Lay
    answers_innocent: bool = True
    """Whether the rest is sound, so that the clip beside must be answered; else it may be refused."""


def benchmark_cases() -> Iterator[Case]:
    """Benchmarks: `lay` gets the folder, which holds `innocent.mp4`, `hostile.mp4` and their table."""
    for number, name in enumerate(NAMES):
        yield Case(f"file-name-{number}", _rows(HOSTILE | {"file_name": name}))
        yield Case(f"name-{number}", _rows(HOSTILE | {"name": name}))
    for number, address in enumerate(ADDRESSES):
        yield Case(f"address-{number}", _rows(HOSTILE | {"file_name": address}))
        yield Case(f"cleaned-{number}", _rows(HOSTILE | {"cleaned": address}))
    for field in ("label", "creator", "split", "traces"):
        for number, cell in enumerate(CELLS):
            yield Case(f"{field}-{number}", _rows(HOSTILE | {field: cell}))
    for number, document in enumerate(DOCUMENTS):
        yield Case(f"line-{number}", _raw_line(document))
    yield from _file_cases()
    yield from _table_cases()


def _file_cases() -> Iterator[Case]:
    yield Case("link-to-file", _replaced(lambda file: file.symlink_to("../victim/holiday.mp4")))
    yield Case("link-to-itself", _replaced(lambda file: file.symlink_to(file.name)))
    yield Case("link-to-nothing", _replaced(lambda file: file.symlink_to("../none")))
    yield Case("link-to-proc", _replaced(lambda file: file.symlink_to("/proc/self/environ")))
    yield Case("pipe", _replaced(os.mkfifo))
    yield Case("device", _replaced(lambda file: file.symlink_to("/dev/zero")))
    yield Case("socket", _replaced(_bind))
    yield Case("folder", _replaced(lambda file: file.mkdir()))
    yield Case("no-bytes", _replaced(lambda file: file.touch()))
    yield Case("hole-of-1-tb", _replaced(_hole))
    yield Case("linked-folder", _linked_folder)
    yield Case("two-linked-folders", _linked_in_circles)


def _table_cases() -> Iterator[Case]:
    refused = {"answers_innocent": False}
    yield Case("parquet-of-one-value", _table("metadata.parquet", _write_repeated), **refused)
    yield Case("parquet-of-wide-text", _table("metadata.parquet", _write_wide), **refused)
    yield Case("parquet-cut", _table("metadata.parquet", _write_cut), **refused)
    yield Case("csv-of-one-line", _table("metadata.csv", _hole), **refused)
    yield Case("csv-of-one-quote", _table("metadata.csv", _write_quote), **refused)
    yield Case("csv-of-columns", _table("metadata.csv", _write_columns), **refused)
    yield Case("jsonl-of-one-line", _table("metadata.jsonl", _hole), **refused)
    yield Case("not-utf-8", _table("metadata.csv", _write_other_text), **refused)
    yield Case("empty-table", _table("metadata.csv", lambda file: file.touch()), **refused)
    yield Case("table-is-a-pipe", _table("metadata.csv", os.mkfifo), **refused)
    yield Case("table-is-a-folder", _table("metadata.csv", lambda file: file.mkdir()), **refused)
    yield Case("table-is-a-link", _table("metadata.csv", _link_to_notes), **refused)
    for number, document in enumerate(DOCUMENTS):
        yield Case(f"deeptrace-{number}", _deeptrace(document), **refused)
    yield Case("zip-file-and-folder", _zipped("a", "a/b.mp4"), **refused)
    yield Case("zip-that-climbs", _zipped("../../victim/holiday.mp4"), **refused)


def run_cases() -> Iterator[Case]:
    """Runs: `lay` gets the folder of a run that was asked about the honest benchmark."""
    for number, document in enumerate(DOCUMENTS):
        yield Case(f"recipe-{number}", _document("recipe.json", document))
        yield Case(f"facts-{number}", _cell("clips", "facts", document))
        yield Case(f"notes-{number}", _cell("answers", "notes", document))
    for field in ("benchmark", "layout", "mapping", "condition", "model", "protocol", "seed"):
        for number in (0, 2, 3, 4, 8, 11, 13, 14):
            yield Case(f"recipe-{field}-{number}", _recipe(field, CELLS[number]))
    for number, text in enumerate(IDS):
        yield Case(f"clip-id-{number}", _cell("clips", "clip", text))
        yield Case(f"answer-id-{number}", _cell("answers", "clip", text))
        yield Case(f"second-id-{number}", _cell("answers", "second", text))
    for number, name in enumerate(NAMES):
        if name.encode(errors="ignore").decode() == name:
            yield Case(f"location-{number}", _cell("clips", "location", name))
            yield Case(f"reviewer-{number}", _cell("answers", "reviewer", name))
    for number, (column, value) in enumerate(_NUMBERS):
        yield Case(f"answers-{column}-{number}", _cell("answers", column, value))
    yield from _run_folder_cases()


_NUMBERS = (
    ("protocol_version", -(2**31)),
    ("latency_us", -(2**63)),
    ("input_tokens", 2**63 - 1),
    ("cost_usd", float("nan")),
    ("cost_usd", float("inf")),
    ("attempt", -1),
    ("row_version", 2**31 - 1),
    ("key", "x"),
    ("text", "x" * 3_000_000),
    ("failure_reason", "no-such-reason"),
    ("condition", "sampling=uniform-999999999999"),
)


def _run_folder_cases() -> Iterator[Case]:
    for name in ("answers.lance.lock", "answers.ledger", "clips.ledger", "recipe.json"):
        yield Case(f"linked-{name}", _linked(name, "../victim/notes.txt"))
    for name in ("answers.lance", "clips.lance"):
        yield Case(f"linked-{name}", _linked(name, "../victim"))
        yield Case(f"file-{name}", _document(name, "no table"))
    yield Case("ledger-of-1-tb", lambda run: _hole(run / "answers.ledger"))
    yield Case("ledger-of-words", _document("answers.ledger", "+../../victim\n!\n-\n" * 1000))
    yield Case("manifest-cut", _cut_manifest)
    yield Case("columns-of-other-types", _other_types)


def _rows(hostile: Mapping[str, Any]) -> Lay:
    def lay(bench: Path) -> None:
        lines = [json.dumps(row) for row in (hostile, INNOCENT)]
        (bench / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")

    return lay


def _raw_line(line: str) -> Lay:
    def lay(bench: Path) -> None:
        table = bench / "metadata.jsonl"
        table.write_text(f"{json.dumps(INNOCENT)}\n{line}\n", encoding="utf-8")

    return lay


def _replaced(put: Callable[[Path], object]) -> Lay:
    def lay(bench: Path) -> None:
        (bench / "hostile.mp4").unlink()
        put(bench / "hostile.mp4")

    return lay


def _table(name: str, put: Callable[[Path], object]) -> Lay:
    def lay(bench: Path) -> None:
        (bench / "metadata.jsonl").unlink()
        put(bench / name)

    return lay


def _deeptrace(document: str) -> Lay:
    return _table("all_data.json", lambda file: file.write_text(document, encoding="utf-8"))


def _zipped(*members: str) -> Lay:
    def put(file: Path) -> None:
        row = {
            "video_id": "hostile",
            "video_path": "videos/hostile.mp4",
            "video_type": "fake_video",
        }
        file.write_text(json.dumps([row]), encoding="utf-8")
        with zipfile.ZipFile(file.with_name("real_videos.zip"), "w") as archive:
            for member in members:
                archive.writestr(member, b"bytes")

    return _table("all_data.json", put)


def _linked_folder(bench: Path) -> None:
    _rows(HOSTILE | {"file_name": "below/holiday.mp4"})(bench)
    (bench / "below").symlink_to("../victim")


def _linked_in_circles(bench: Path) -> None:
    for name in ("one", "two"):
        (bench / name).symlink_to(".")


def _bind(file: Path) -> None:
    here = Path.cwd()
    os.chdir(file.parent)  # a socket's path may be no longer than 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(file.name)
    finally:
        os.chdir(here)


def _hole(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(2**40)


def _write_repeated(file: Path) -> None:
    column = pa.array(["x" * 1000]).dictionary_encode().take(pa.array([0] * 4_000_000))
    pq.write_table(pa.table({"file_name": column, "label": column}), file)


def _write_wide(file: Path) -> None:
    cell = "x" * 200_000_000
    pq.write_table(pa.table({"file_name": [cell], "label": [cell]}), file, compression="zstd")


def _write_cut(file: Path) -> None:
    pq.write_table(pa.table({"file_name": ["a.mp4"], "label": ["real"]}), file)
    file.write_bytes(file.read_bytes()[:-20])


def _write_other_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00a")


def _write_quote(file: Path) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.write('file_name,label\n"')
        for _ in range(300):
            out.write("innocent.mp4,real\n" * 50_000)


def _write_columns(file: Path) -> None:
    file.write_text(",".join(f"c{i}" for i in range(2_000_000)) + "\nx\n", encoding="utf-8")


def _link_to_notes(file: Path) -> None:
    file.symlink_to("../victim/notes.txt")


def _document(name: str, text: str) -> Lay:
    def lay(run: Path) -> None:
        target = run / name
        if target.is_dir():
            shutil.rmtree(target)
        target.write_text(text, encoding="utf-8")

    return lay


def _recipe(field: str, value: Any) -> Lay:
    def lay(run: Path) -> None:
        document = json.loads((run / "recipe.json").read_text(encoding="utf-8"))
        document["recipe"][field] = value
        (run / "recipe.json").write_text(json.dumps(document), encoding="utf-8")

    return lay


def _cell(table: str, column: str, value: Any) -> Lay:
    """The first row's cell, written as whoever has no unreel would write it."""

    def lay(run: Path) -> None:
        place = run / f"{table}.lance"
        before = lance.dataset(place).to_table()
        rows = before.to_pylist()
        rows[0] |= {column: value, "seal": None}
        shutil.rmtree(place)
        lance.write_dataset(pa.Table.from_pylist(rows, schema=before.schema), place)

    return lay


def _linked(name: str, target: str) -> Lay:
    def lay(run: Path) -> None:
        place = run / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        place.symlink_to(target)

    return lay


def _cut_manifest(run: Path) -> None:
    for manifest in (run / "answers.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(manifest.read_bytes()[:40])


def _other_types(run: Path) -> None:
    place = run / "answers.lance"
    columns = lance.dataset(place).schema.names
    shutil.rmtree(place)
    lance.write_dataset(pa.table({name: [[1.5]] for name in columns}), place)
